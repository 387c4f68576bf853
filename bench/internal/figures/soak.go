package figures

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

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
func (b *Bench) Soak() []Figure { return []Figure{{"soak", b.soak}} }

// soak loads one server evenly and compares its memory at the end with that of the
// beginning.
func (b *Bench) soak(ctx context.Context) ([]report.Row, error) {
	links, err := b.filled(ctx, soakStore)
	if err != nil {
		return nil, err
	}
	all, err := b.rounds(ctx, b.onFilled("soak", links, func(ctx context.Context, s *process.Server) (sample, error) {
		return b.soakOn(ctx, s, links)
	}))
	if err != nil {
		return nil, err
	}
	ratio := all[0].values(func(r sample) float64 { return float64(r.rss) / float64(r.rssFirst) })
	row := func(name string, f func(sample) float64) report.Row {
		return report.Row{Figure: name, Unit: report.Megabytes, Values: all[0].values(f), Broken: all[0].broken()}
	}
	return []report.Row{
		row("resident memory, minute 5 of a soak", func(r sample) float64 { return float64(r.rssFirst) / 1e6 }),
		row("resident memory, last minute of a soak", func(r sample) float64 { return float64(r.rss) / 1e6 }),
		{
			Figure: fmt.Sprintf("last minute of %s ÷ minute 5", b.cfg.Measure), Unit: report.Ratio, Values: ratio,
			Bar: report.Bar{AtLeast: 1 - soakApart, AtMost: 1 + soakApart}, Broken: all[0].broken(),
		},
	}, nil
}

// soakOn is a bit of everything: visitors, makers, lists, searches, statistics, pages.
func (b *Bench) soakOn(ctx context.Context, s *process.Server, links *fill.Links) (r sample, err error) {
	if err := b.searchable(ctx, s); err != nil {
		return sample{}, err
	}
	code := popular(soakLinks, func(i int) string { return string(links.Code(i)) })
	random := rand.New(rand.NewPCG(rand.Uint64(), 3))
	asks := func(name string, path func() string, key string) load.Stream {
		return load.Stream{
			Name: name, Addr: s.Addr, Conns: 2, Rate: 2, Want: 200,
			Next: func(to []byte) []byte { return append(to, get(s, path(), key)...) },
		}
	}
	ctx, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	var memory [2]series
	var failed error
	begin := time.Now()
	watch.Go(func() { failed = b.watch(ctx, s, begin, &memory) })
	r, err = b.drive(ctx, s, -1,
		redirects(s.Addr, 64, 1000, code),
		creates(s.Addr, "/api/v1/links", 4, 20),
		asks("lists", func() string { return "/api/v1/links?limit=100" }, adminKey),
		asks("searches", func() string { return "/api/v1/links?q=" + string(rune('a'+random.IntN(26))) + "r" }, adminKey),
		asks("statistics", func() string { return "/api/v1/links/" + code(random) + "/stats" }, adminKey),
		asks("previews", func() string { return "/" + code(random) + "+" }, ""),
	)
	stop()
	watch.Wait()
	if err := errors.Join(err, failed); err != nil {
		return r, err
	}
	for i, at := range []*int64{&r.rssFirst, &r.rss} {
		if len(memory[i]) == 0 {
			return r, fmt.Errorf("a soak of %s is too short", b.cfg.Measure)
		}
		*at = int64(report.Median(memory[i].values(func(r sample) float64 { return float64(r.rss) })))
	}
	return r, nil
}

// searchable waits until the whole store is in the search index, which a store that was
// filled from without is not.
func (b *Bench) searchable(ctx context.Context, s *process.Server) error {
	for {
		complete, err := counter(ctx, s.Admin, "curt_search_complete")
		if err != nil || complete == 1 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// watch reads the server's memory once a second, in minute 5 and in the last one.
func (b *Bench) watch(ctx context.Context, s *process.Server, begin time.Time, memory *[2]series) error {
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
			memory[0] = append(memory[0], sample{rss: rss})
		case b.cfg.Measure-soakSpan <= at && at < b.cfg.Measure:
			memory[1] = append(memory[1], sample{rss: rss})
		}
		if at-last >= soakSpan {
			last = at
			b.say("%s: %.1f MB", at.Round(time.Second), float64(rss)/1e6)
		}
	}
}
