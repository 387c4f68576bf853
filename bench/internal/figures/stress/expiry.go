package stress

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/fill"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	expiryMinute = time.Minute // in which all links end
	expiryRate   = 1000        // redirects a second meanwhile
	expiryCodes  = 500         // that they are of
	expiryLeast  = 10          // ms: what p99 may be however fast redirects are on links without ends
	expiryLate   = 30          // s behind the minute, until all links are announced

	// expiryLead is how long filling, a start and the search index may take, with so much for each link.
	expiryLead, expiryLeadLink = time.Minute, 300 * time.Microsecond
)

// Expiry returns the figures of links that end in one minute.
func Expiry() []figures.Figure { return []figures.Figure{{Name: "expiry", Take: expiry}} }

// expiry measures redirects on a store while its links end, and on one whose links have no end.
func expiry(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	minute := b.WithWindow(expiryMinute)
	all, err := minute.Rounds(ctx, figures.Turn{Name: "links without ends", Run: ending(minute, false)}, figures.Turn{Name: "links that end", Run: ending(minute, true)})
	if err != nil {
		return nil, err
	}
	alone, links := all[0].Quantile(0, 0.99), figures.SizeName(b.Config.Links)
	return []report.Row{
		{
			Figure: "redirect p99 while " + links + " end in a minute", Unit: report.Milliseconds, Values: all[1].Quantile(0, 0.99), Broken: all[1].Broken(),
			Bases: []report.Base{{Name: "links without ends", Values: alone}}, Bar: report.Bar{AtMost: max(expiryLeast, 1.5*report.Median(alone))},
		},
		{
			Figure: "all announced, behind the minute, " + links, Unit: report.Seconds,
			Values: all[1].Values(func(r figures.Sample) float64 { return r.Late.Seconds() }), Bar: report.Bar{AtMost: expiryLate},
		},
	}, nil
}

// ending is a turn on a new store, whose links have ends or not.
func ending(b *figures.Bench, ends bool) func(context.Context) (figures.Sample, error) {
	return func(ctx context.Context) (r figures.Sample, err error) {
		data, drop, err := b.Folder()
		if err != nil {
			return figures.Sample{}, err
		}
		defer func() { err = errors.Join(err, drop()) }()
		n := b.Config.Links
		from := time.Now().Add(expiryLead + time.Duration(n)*expiryLeadLink).UTC().Truncate(time.Second)
		end := func(uint64) time.Time { return time.Time{} }
		if ends {
			end = func(i uint64) time.Time {
				return from.Add(time.Duration(i) * expiryMinute / time.Duration(n)).Truncate(time.Millisecond)
			}
		}
		if _, err := fill.FillEnding(ctx, data, n, end, b.Config.Progress); err != nil {
			return figures.Sample{}, err
		}
		return b.Curt(ctx, data, -1, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
			return acrossEnds(ctx, b, s, from, ends)
		})
	}
}

// acrossEnds drives redirects of links without an end for a minute, from when others end.
func acrossEnds(ctx context.Context, b *figures.Bench, s *process.Server, from time.Time, ends bool) (r figures.Sample, err error) {
	codes, err := figures.Seed(ctx, s, expiryCodes)
	if err != nil {
		return r, err
	}
	if err := figures.Await(ctx, s, "curt_search_complete", 1); err != nil {
		return r, err
	}
	if ends {
		ahead := time.Until(from.Add(-b.Config.Warmup))
		if ahead < 0 {
			return r, fmt.Errorf("the links end already: filling and starting took %s longer than planned", -ahead)
		}
		select {
		case <-ctx.Done():
			return r, context.Cause(ctx)
		case <-time.After(ahead):
		}
	}
	r, err = b.Drive(ctx, s, -1, figures.Redirects(s.Addr, figures.ClickConns, expiryRate, figures.Popular(len(codes), func(i int) string { return codes[i] })))
	if err != nil || !ends {
		return r, err
	}
	if err := figures.Await(ctx, s, "curt_expired_links_total", float64(b.Config.Links)); err != nil {
		return r, err
	}
	r.Late = max(0, time.Since(from.Add(expiryMinute)))
	b.Say("all links announced %s behind the minute", r.Late.Round(time.Millisecond))
	return r, nil
}
