// Package stress measures one server under what lasts long or comes at once: an hour of load, many
// large lists, a million links that end.
package stress

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/fill"
	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	// soakStore are the links of the store that is soaked: far more than its page caches
	// hold, so that they are full soon. The first soakLinks are clicked, by Zipf's law.
	soakStore, soakLinks = 500_000, 20_000
	// soakFirst is when the memory is read that the last must be like, and soakSpan
	// over how long both are read: collections of garbage let it swing.
	soakFirst = 5 * time.Minute
	soakSpan  = time.Minute
	// soakApart is how far they may lie apart, of the first.
	soakApart = 0.10
)

// Soak returns the figure that takes an hour.
func Soak() []figures.Figure { return []figures.Figure{{Name: "soak", Take: soak}} }

// soak loads one server evenly and compares its memory at the end with that of the
// beginning.
func soak(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	links, err := b.Filled(ctx, soakStore)
	if err != nil {
		return nil, err
	}
	all, err := b.Rounds(ctx, b.OnFilled("soak", links, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
		return soakOn(ctx, b, s, links)
	}))
	if err != nil {
		return nil, err
	}
	ratio := all[0].Values(func(r figures.Sample) float64 { return float64(r.RSS) / float64(r.RSSFirst) })
	row := func(name string, f func(figures.Sample) float64) report.Row {
		return report.Row{Figure: name, Unit: report.Megabytes, Values: all[0].Values(f), Broken: all[0].Broken()}
	}
	return []report.Row{
		row("resident memory, minute 5 of a soak", func(r figures.Sample) float64 { return float64(r.RSSFirst) / 1e6 }),
		row("resident memory, last minute of a soak", func(r figures.Sample) float64 { return float64(r.RSS) / 1e6 }),
		{
			Figure: fmt.Sprintf("last minute of %s ÷ minute 5", b.Config.Measure), Unit: report.Ratio, Values: ratio,
			Bar: report.Bar{AtLeast: 1 - soakApart, AtMost: 1 + soakApart}, Broken: all[0].Broken(),
		},
	}, nil
}

// soakOn is a bit of everything: visitors, makers, lists, searches, statistics, pages.
func soakOn(ctx context.Context, b *figures.Bench, s *process.Server, links *fill.Links) (r figures.Sample, err error) {
	if err := figures.Await(ctx, s, "curt_search_complete", 1); err != nil {
		return figures.Sample{}, err
	}
	code := figures.Popular(soakLinks, func(i int) string { return string(links.Code(i)) })
	random := rand.New(rand.NewPCG(rand.Uint64(), 3))
	asks := func(name string, path func() string, key string) load.Stream {
		return load.Stream{
			Name: name, Addr: s.Addr, Conns: 2, Rate: 2, Want: 200,
			Next: func(to []byte) []byte { return append(to, figures.Get(s, path(), key)...) },
		}
	}
	ctx, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	var memory [2]figures.Series
	var failed error
	begin := time.Now()
	watch.Go(func() { failed = readMemory(ctx, b, s, begin, &memory) })
	r, err = b.Drive(ctx, s, -1,
		figures.Redirects(s.Addr, 64, 1000, code),
		figures.Creates(s.Addr, "/api/v1/links", 4, 20),
		asks("lists", func() string { return "/api/v1/links?limit=100" }, figures.AdminKey),
		asks("searches", func() string { return "/api/v1/links?q=" + string(rune('a'+random.IntN(26))) + "r" }, figures.AdminKey),
		asks("statistics", func() string { return "/api/v1/links/" + code(random) + "/stats" }, figures.AdminKey),
		asks("previews", func() string { return "/" + code(random) + "+" }, ""),
	)
	stop()
	watch.Wait()
	if err := errors.Join(err, failed); err != nil {
		return r, err
	}
	for i, at := range []*int64{&r.RSSFirst, &r.RSS} {
		if len(memory[i]) == 0 {
			return r, fmt.Errorf("a soak of %s is too short", b.Config.Measure)
		}
		*at = int64(report.Median(memory[i].Values(func(r figures.Sample) float64 { return float64(r.RSS) })))
	}
	return r, nil
}

// readMemory reads the server's memory once a second, in minute 5 and in the last one.
func readMemory(ctx context.Context, b *figures.Bench, s *process.Server, begin time.Time, memory *[2]figures.Series) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		rss, err := process.RSS(s.PID)
		if err != nil {
			return err
		}
		at := time.Since(begin)
		switch {
		case soakFirst-soakSpan/2 <= at && at < soakFirst+soakSpan/2:
			memory[0] = append(memory[0], figures.Sample{RSS: rss})
		case b.Config.Measure-soakSpan <= at && at < b.Config.Measure:
			memory[1] = append(memory[1], figures.Sample{RSS: rss})
		}
		if at-last >= soakSpan {
			last = at
			b.Say("%s: %.1f MB", at.Round(time.Second), float64(rss)/1e6)
		}
	}
}
