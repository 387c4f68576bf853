package figures

import (
	"context"
	"fmt"
	"time"

	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

// start measures from exec to the first 200 of /readyz, and the resident memory
// once the server has been idle for a while.
func (b *Bench) start(ctx context.Context) ([]report.Row, error) {
	some, err := b.filled(ctx, min(promisedStart, b.cfg.Links))
	if err != nil {
		return nil, err
	}
	settle := func(ctx context.Context, s *process.Server) (r sample, err error) {
		select {
		case <-time.After(b.cfg.Settle):
		case <-ctx.Done():
			return sample{}, fmt.Errorf("settle: %w", context.Cause(ctx))
		}
		r.rss, err = process.RSS(s.PID)
		return r, err
	}
	all, err := b.rounds(ctx, b.onBare("start bare", -1, settle), b.onEmpty("start, empty store", -1, settle),
		b.onFilled("start, "+sizeName(some.Count()), some, settle))
	if err != nil {
		return nil, err
	}
	startup := func(s series) []float64 { return s.values(func(r sample) float64 { return millis(r.startup) }) }
	memory := func(s series) []float64 { return s.values(func(r sample) float64 { return float64(r.rss) / 1e6 }) }
	row := func(name string, u report.Unit, bar float64, f func(series) []float64, s series) report.Row {
		return report.Row{
			Figure: name, Unit: u, Bar: report.Bar{AtMost: bar}, Values: f(s),
			Bases: []report.Base{{Name: "bare net/http", Values: f(all[0])}},
		}
	}
	size := sizeName(some.Count())
	return []report.Row{
		row("start-up, empty store", report.Milliseconds, 300, startup, all[1]),
		row("start-up, "+size, report.Milliseconds, 1000, startup, all[2]),
		row("resident memory idle, empty store", report.Megabytes, 40, memory, all[1]),
		row("resident memory idle, "+size, report.Megabytes, 40, memory, all[2]),
	}, nil
}
