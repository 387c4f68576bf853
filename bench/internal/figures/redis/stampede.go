package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/load"
	"curt/bench/internal/report"
)

const (
	stampedeRate = 20_000 // requests a second of all servers together
	stampedeFor  = 2 * time.Second
)

// stampede lets everybody ask three servers for one link that none of them holds.
func stampede(ctx context.Context, b *figures.Bench) (rows []report.Row, err error) {
	f, err := gather(ctx, b, killLinks)
	defer func() { err = errors.Join(err, f.end()) }()
	if err != nil {
		return nil, err
	}
	if err := f.three(ctx, f.redis.Addr); err != nil {
		return nil, err
	}
	if err := figures.Pause(ctx, 3*time.Second); err != nil {
		return nil, err
	}
	reads := report.Row{
		Figure: fmt.Sprintf("reads of PostgreSQL for one cold link that 3 servers are asked for %d times a second", stampedeRate),
		Unit:   report.Reads, Bar: report.Bar{AtMost: 3},
	}
	p99 := report.Row{Figure: "– p99 of the answers, the first ones included", Unit: report.Milliseconds}
	for round := range b.Config.Rounds {
		before, err := f.sum(ctx, "curt_cache_loads_total")
		if err != nil {
			return nil, err
		}
		var streams []load.Stream
		for _, s := range f.servers {
			streams = append(streams, figures.Redirects(s.Addr, 16, float64(stampedeRate)/float64(len(f.servers)), func(*rand.Rand) string { return f.codes[round] }))
		}
		o, err := load.Run(ctx, load.Plan{Streams: streams, Measure: stampedeFor, Seed: uint64(round)})
		if err != nil {
			return nil, err
		}
		after, err := f.sum(ctx, "curt_cache_loads_total")
		if err != nil {
			return nil, err
		}
		rate := float64(o.Answered()) / o.Window.Seconds()
		if err := o.Wrong(); err != nil {
			reads.Broken += err.Error()
		}
		if rate < 0.95*stampedeRate {
			reads.Broken += fmt.Sprintf("round %d: only %.0f answers a second; ", round+1, rate)
		}
		worst := time.Duration(0)
		for i := range o.Streams {
			worst = max(worst, o.Streams[i].Latency.Quantile(0.99))
		}
		reads.Values, p99.Values = append(reads.Values, after-before), append(p99.Values, figures.Millis(worst))
		b.Say("stampede %d: %.0f answers a second, %.0f reads, p99 %v", round+1, rate, after-before, worst)
	}
	p99.Broken = reads.Broken
	return []report.Row{reads, p99}, nil
}
