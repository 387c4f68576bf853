package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/load"
	"curt/bench/internal/report"
	"curt/internal/testkit/relay"
)

const (
	killed     = 1_000
	killLinks  = 20_000                // behind them those that the load asks for
	killEvery  = 25 * time.Millisecond // under load
	deafEvery  = 20 * time.Millisecond // for twenty seconds: until the silence is noticed, and behind it
	killLoad   = 2_000                 // redirects a second of all servers together
	askedEvery = time.Millisecond      // at first; then a tenth of the time that went by
	killBound  = 20 * time.Second      // for a link that does not die at all
)

// kills takes how long a killed link lives on any of three servers, under load.
func kills(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	row := report.Row{
		Figure: fmt.Sprintf("a kill until 410 on each of 3 servers, p99 of %d at %d redirects a second", killed, killLoad),
		Unit:   report.Milliseconds, Bar: report.Bar{AtMost: 100},
	}
	answered := report.Row{Figure: "– of it until the kill is answered, p99", Unit: report.Milliseconds}
	spread := report.Row{Figure: "– from the answer on, p99", Unit: report.Milliseconds}
	err := withKills(ctx, b, false, killEvery, func(kills []death, broken string) {
		row.Broken = broken
		row.Values = []float64{tail(b, "kills", kills, func(d death) time.Duration { return d.dead })}
		answered.Values = []float64{tail(b, "answers", kills, func(d death) time.Duration { return d.answered })}
		spread.Values = []float64{tail(b, "behind answers", kills, func(d death) time.Duration { return d.dead - d.answered })}
	})
	return []report.Row{row, answered, spread}, err
}

// deaf does so while the subscriptions of all servers hear nothing and nobody is told.
func deaf(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	row := report.Row{
		Figure: fmt.Sprintf("– with Pub/Sub cut without a word: the longest of %d", killed),
		Unit:   report.Milliseconds, Bar: report.Bar{AtMost: 5_000},
	}
	err := withKills(ctx, b, true, deafEvery, func(kills []death, broken string) {
		tail(b, "kills without a bus", kills, func(d death) time.Duration { return d.dead })
		longest := time.Duration(0)
		for _, d := range kills {
			longest = max(longest, d.dead)
		}
		row.Values, row.Broken = []float64{figures.Millis(longest)}, broken
		if longest < 500*time.Millisecond {
			row.Broken += "all were heard at once: the subscriptions may not have been silent"
		}
	})
	return []report.Row{row}, err
}

// death is how long after a kill was sent it was answered, and every server had answered 410.
type death struct{ answered, dead time.Duration }

// tail prints how some time of the kills is spread, and returns its p99 in milliseconds.
func tail(b *figures.Bench, what string, kills []death, of func(death) time.Duration) float64 {
	took := make([]time.Duration, len(kills))
	for i, d := range kills {
		took[i] = of(d)
	}
	slices.Sort(took)
	b.Say("%s: p50 %v, p99 %v, longest %v", what, took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	return figures.Millis(took[len(took)*99/100])
}

// withKills kills links that three servers have in memory, under load.
func withKills(ctx context.Context, b *figures.Bench, cut bool, every time.Duration, done func(kills []death, broken string)) (err error) {
	f, err := gather(ctx, b, killLinks)
	defer func() { err = errors.Join(err, f.end()) }()
	if err != nil {
		return err
	}
	r, err := relay.Start(f.redis.Addr)
	if err != nil {
		return err
	}
	f.ends = append(f.ends, r.Close)
	at := f.redis.Addr
	if cut {
		at = r.Addr()
	}
	if err := f.three(ctx, at); err != nil {
		return err
	}
	if err := figures.Pause(ctx, 3*time.Second); err != nil { // subscriptions, and what was before
		return err
	}
	doomed := f.codes[:killed]
	f.codes = f.codes[killed:]
	k := killer{f: f, cut: cut, client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: killed, MaxConnsPerHost: 0},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	defer k.client.CloseIdleConnections()
	if err := k.visit(ctx, doomed); err != nil {
		return err
	}
	r.Mute(cut)
	return k.under(ctx, doomed, every, done)
}

// killer kills links and sees when they are dead.
type killer struct {
	f      *fleet
	cut    bool // the bus says nothing
	client *http.Client
}

// under kills the links, one every so often, while the servers are loaded for as long as
// that takes.
func (k *killer) under(ctx context.Context, codes []string, every time.Duration, done func([]death, string)) error {
	var streams []load.Stream
	for _, s := range k.f.servers {
		streams = append(streams, figures.Redirects(s.Addr, 8, float64(killLoad)/float64(len(k.f.servers)), figures.Popular(len(k.f.codes), func(i int) string { return k.f.codes[i] })))
	}
	kills, failed := make([]death, len(codes)), make([]error, len(codes))
	window := time.Duration(len(codes))*every + 2*time.Second
	var wg sync.WaitGroup
	var outcome load.Outcome
	var loadErr error
	wg.Go(func() {
		outcome, loadErr = load.Run(ctx, load.Plan{Streams: streams, Warmup: time.Second, Measure: window, Seed: 1})
	})
	begun := time.Now().Add(time.Second) // when the load is measured
	for i, code := range codes {
		if figures.Pause(ctx, time.Until(begun.Add(time.Duration(i)*every))) != nil {
			break
		}
		at := k.f.servers[i%len(k.f.servers)]
		if k.cut { // whoever changes something reads the log, and hears of others there
			at = k.f.servers[0]
		}
		wg.Go(func() { kills[i], failed[i] = k.kill(ctx, at.Addr, code) })
	}
	wg.Wait()
	if err := errors.Join(append(failed, loadErr, ctx.Err())...); err != nil {
		return err
	}
	broken := ""
	if err := outcome.Wrong(); err != nil {
		broken = err.Error()
	}
	done(kills, broken)
	return nil
}

// kill switches a link off on one server, and asks all until they answer 410.
func (k *killer) kill(ctx context.Context, at netip.AddrPort, code string) (d death, err error) {
	begin := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, "http://"+at.String()+"/api/v1/links/"+code, strings.NewReader(`{"status":"disabled"}`))
	if err != nil {
		return d, fmt.Errorf("kill %s: %w", code, err)
	}
	req.Header.Set("Authorization", "Bearer "+figures.AdminKey)
	req.Header.Set("Content-Type", "application/json")
	if err := k.want(req, http.StatusOK); err != nil {
		return d, fmt.Errorf("kill %s: %w", code, err)
	}
	d.answered = time.Since(begin)
	errs := make([]error, len(k.f.servers))
	var wg sync.WaitGroup
	for i, s := range k.f.servers {
		wg.Go(func() {
			for errs[i] = k.ask(ctx, s.Addr, code, http.StatusGone); errs[i] != nil && time.Since(begin) < killBound; {
				_ = figures.Pause(ctx, max(askedEvery, time.Since(begin)/10)) // its end is seen in the question
				errs[i] = k.ask(ctx, s.Addr, code, http.StatusGone)
			}
		})
	}
	wg.Wait()
	d.dead = time.Since(begin)
	return d, errors.Join(errs...)
}

// visit has every server hold the links.
func (k *killer) visit(ctx context.Context, codes []string) error {
	for _, s := range k.f.servers {
		for _, code := range codes {
			if err := k.ask(ctx, s.Addr, code, http.StatusFound); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *killer) ask(ctx context.Context, at netip.AddrPort, code string, status int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+"/"+code, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", code, err)
	}
	return k.want(req, status)
}

func (k *killer) want(req *http.Request, status int) error {
	res, err := k.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", req.Method, req.URL.Path, err)
	}
	_, err = io.Copy(io.Discard, res.Body)
	err = errors.Join(err, res.Body.Close())
	if res.StatusCode != status {
		return fmt.Errorf("%s %s: answered %s", req.Method, req.URL.Path, res.Status)
	}
	return err
}
