package embedded

import (
	"context"
	"fmt"
	"runtime"

	"curt/bench/internal/bare"
	"curt/bench/internal/figures"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	// clicksBeside arrive while creates are measured at full speed.
	clicksBeside = 1_000

	// clickedLinks of a filled store are clicked.
	clickedLinks = 100_000
)

func createsEmpty(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	all, err := b.Rounds(ctx, append(b.CreateBase(-1, figures.CreateConns),
		b.OnEmpty("creates", -1, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
			return b.Drive(ctx, s, -1, figures.Creates(s.Addr, bare.CreatePath, figures.CreateConns, 0))
		}),
		b.OnEmpty("creates and clicks", -1, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
			codes, err := figures.Seed(ctx, s, figures.Seeded)
			if err != nil {
				return figures.Sample{}, err
			}
			return besideClicks(ctx, b, s, figures.Seeded, func(i int) string { return codes[i] })
		}))...)
	if err != nil {
		return nil, err
	}
	return createsFigure("empty store", all, 10_000), nil
}

func createsFilled(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	links, err := b.Filled(ctx, b.Config.Links)
	if err != nil {
		return nil, err
	}
	all, err := b.Rounds(ctx, append(b.CreateBase(-1, figures.CreateConns),
		b.OnFilled("creates", links, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
			return b.Drive(ctx, s, -1, figures.Creates(s.Addr, bare.CreatePath, figures.CreateConns, 0))
		}),
		b.OnFilled("creates and clicks", links, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
			return besideClicks(ctx, b, s, min(clickedLinks, links.Count()), func(i int) string { return string(links.Code(i)) })
		}))...)
	if err != nil {
		return nil, err
	}
	return createsFigure(figures.SizeName(links.Count()), all, 5_000), nil
}

// besideClicks creates at full speed while clicks arrive.
func besideClicks(ctx context.Context, b *figures.Bench, s *process.Server, n int, code func(i int) string) (figures.Sample, error) {
	return b.Drive(ctx, s, -1, figures.Creates(s.Addr, bare.CreatePath, figures.CreateConns, 0),
		figures.Redirects(s.Addr, figures.ClickConns, clicksBeside, figures.Popular(n, code)))
}

// createsFigure are the rows of two baselines, creates, and creates beside clicks.
func createsFigure(store string, all []figures.Series, atLeast float64) []report.Row {
	rows := figures.CreateRows(fmt.Sprintf("%d connections, %s", figures.CreateConns, store), all[2], all[:2], atLeast)
	rows = append(rows, figures.CreateRows(fmt.Sprintf("the same while %d clicks/s arrive, %s", clicksBeside, store), all[3], all[:2], atLeast)...)
	return append(rows, report.Row{
		Figure: "– p99 of these clicks", Unit: report.Milliseconds,
		Values: all[3].Quantile(1, 0.99), Broken: all[3].Broken(),
	})
}

// oneCore pins the server to core 0 and the generator to core 1.
func oneCore(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	const conns, bar = 32, 7_000
	if runtime.NumCPU() < 2 {
		return []report.Row{{
			Figure: "durable creates on one core", Unit: report.PerSecond, Bar: report.Bar{AtLeast: bar},
			Broken: "not measured: server and generator need a core each",
		}}, nil
	}
	all, err := b.Rounds(ctx, append(b.CreateBase(0, conns),
		b.OnEmpty("creates on one core", 0, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
			return b.Drive(ctx, s, 1, figures.Creates(s.Addr, bare.CreatePath, conns, 0))
		}))...)
	if err != nil {
		return nil, err
	}
	return figures.CreateRows(fmt.Sprintf("one core, %d clients, empty store", conns), all[2], all[:2], bar), nil
}
