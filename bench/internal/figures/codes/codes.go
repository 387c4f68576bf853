// Package codes measures creates with each way of generating codes beside those with the default one.
package codes

import (
	"context"
	"errors"

	"curt/bench/internal/bare"
	"curt/bench/internal/figures"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	base    = "range"
	filled  = 1_000_000
	atLeast = 0.75 // of the creates of the base
)

// strategies are the values of CURT_CODES that are compared with the base.
func strategies() []string { return []string{"random", "hash", "snowflake", "pool", "words"} }

// Figures returns the figures of the ways of generating codes.
func Figures() []figures.Figure {
	return []figures.Figure{
		{Name: "codes", Take: func(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
			return compare(ctx, b, "empty store", func(setting string) figures.Turn { return onEmpty(b, setting) })
		}},
		{Name: "codes-filled", Take: func(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
			links, err := b.Filled(ctx, filled)
			if err != nil {
				return nil, err
			}
			return compare(ctx, b, figures.SizeName(links.Count()), func(setting string) figures.Turn {
				return figures.Turn{Name: setting, Run: func(ctx context.Context) (figures.Sample, error) {
					return create(ctx, b, links.Folder, setting)
				}}
			})
		}},
	}
}

// onEmpty is a turn on a new store.
func onEmpty(b *figures.Bench, setting string) figures.Turn {
	return figures.Turn{Name: setting, Run: func(ctx context.Context) (r figures.Sample, err error) {
		data, drop, err := b.Folder()
		if err != nil {
			return figures.Sample{}, err
		}
		defer func() { err = errors.Join(err, drop()) }()
		return create(ctx, b, data, setting)
	}}
}

func create(ctx context.Context, b *figures.Bench, data, setting string) (figures.Sample, error) {
	return b.Curt(ctx, data, -1, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
		return b.Drive(ctx, s, -1, figures.Creates(s.Addr, bare.CreatePath, figures.CreateConns, 0))
	}, "CURT_CODES="+setting)
}

// compare returns creates a second of the base, and those of each strategy as a part of those of the base in
// the same round.
func compare(ctx context.Context, b *figures.Bench, store string, turn func(string) figures.Turn) ([]report.Row, error) {
	turns := []figures.Turn{turn(base)}
	for _, s := range strategies() {
		turns = append(turns, turn(s))
	}
	all, err := b.Rounds(ctx, turns...)
	if err != nil {
		return nil, err
	}
	ranged := all[0].PerSecond(0)
	rows := []report.Row{{
		Figure: "creates, CURT_CODES=" + base + ", " + store, Unit: report.PerSecond,
		Values: ranged, CPU: all[0].PerRequest(), Broken: all[0].Broken(),
	}}
	for i, s := range strategies() {
		ratios := all[i+1].PerSecond(0)
		for round := range ratios {
			ratios[round] /= ranged[round]
		}
		rows = append(rows, report.Row{
			Figure: "– CURT_CODES=" + s + " ÷ " + base, Unit: report.Ratio, Bar: report.Bar{AtLeast: atLeast},
			Values: ratios, CPU: all[i+1].PerRequest(), Broken: all[i+1].Broken(),
		})
	}
	return rows, nil
}
