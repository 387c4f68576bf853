// Package embedded measures what curt promises in numbers for one server with a store of its own.
package embedded

import (
	"context"
	"fmt"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

// promisedStart is the size of the store in the promise about start-up.
const promisedStart = 1_000_000

// Figures returns the figures of one server with a store of its own, in the order in which they are taken.
func Figures() []figures.Figure {
	return []figures.Figure{
		{Name: "start", Take: start},
		{Name: "clicks", Take: clicks},
		{Name: "creates", Take: createsEmpty},
		{Name: "onecore", Take: oneCore},
		{Name: "cold", Take: cold},
		{Name: "creates-filled", Take: createsFilled},
		{Name: "backup", Take: backup},
	}
}

// start measures from exec to the first 200 of /readyz, and the resident memory
// once the server has been idle for a while.
func start(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	some, err := b.Filled(ctx, min(promisedStart, b.Config.Links))
	if err != nil {
		return nil, err
	}
	settle := func(ctx context.Context, s *process.Server) (r figures.Sample, err error) {
		select {
		case <-time.After(b.Config.Settle):
		case <-ctx.Done():
			return figures.Sample{}, fmt.Errorf("settle: %w", context.Cause(ctx))
		}
		r.RSS, err = process.RSS(s.PID)
		return r, err
	}
	all, err := b.Rounds(ctx, b.OnBare("start bare", -1, settle), b.OnEmpty("start, empty store", -1, settle),
		b.OnFilled("start, "+figures.SizeName(some.Count()), some, settle))
	if err != nil {
		return nil, err
	}
	startup := func(s figures.Series) []float64 {
		return s.Values(func(r figures.Sample) float64 { return figures.Millis(r.Startup) })
	}
	memory := func(s figures.Series) []float64 {
		return s.Values(func(r figures.Sample) float64 { return float64(r.RSS) / 1e6 })
	}
	row := func(name string, u report.Unit, bar float64, f func(figures.Series) []float64, s figures.Series) report.Row {
		return report.Row{
			Figure: name, Unit: u, Bar: report.Bar{AtMost: bar}, Values: f(s),
			Bases: []report.Base{{Name: "bare net/http", Values: f(all[0])}},
		}
	}
	size := figures.SizeName(some.Count())
	return []report.Row{
		row("start-up, empty store", report.Milliseconds, 300, startup, all[1]),
		row("start-up, "+size, report.Milliseconds, 1000, startup, all[2]),
		row("resident memory idle, empty store", report.Megabytes, 40, memory, all[1]),
		row("resident memory idle, "+size, report.Megabytes, 40, memory, all[2]),
	}, nil
}
