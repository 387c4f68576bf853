package figures

import (
	"context"
	"fmt"
	"runtime"

	"curt/bench/internal/bare"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	createConns = 64
	clickConns  = 32

	// clicksBeside arrive while creates are measured at full speed.
	clicksBeside = 1_000

	// seeded links are clicked on an otherwise empty store.
	seeded = 1_000
	// clickedLinks of a filled store are clicked.
	clickedLinks = 100_000
)

// createBase are the baselines of creates: HTTP alone, and a durable write that
// does not share its sync.
func (b *Bench) createBase(core, conns int) []turn {
	on := func(name, path string) turn {
		return b.onBare(name, core, func(ctx context.Context, s *process.Server) (sample, error) {
			return b.drive(ctx, s, other(core), creates(s.Addr, path, conns, 0))
		})
	}
	return []turn{on("bare creates", bare.CreatePath), on("one fsync each", bare.FsyncPath)}
}

// other is the core of the generator when the server has one of its own.
func other(core int) int {
	if core < 0 {
		return -1
	}
	return core + 1
}

// createRows are throughput and latency of a series of creates. The series of the
// baselines are those of createBase.
func createRows(what string, s series, bases []series, atLeast float64) []report.Row {
	base := func(f func(series) []float64) []report.Base {
		return []report.Base{
			{Name: "bare net/http", Values: f(bases[0]), CPU: bases[0].perRequest()},
			{Name: "one fsync each", Values: f(bases[1]), CPU: bases[1].perRequest()},
		}
	}
	rate := func(s series) []float64 { return s.perSecond(0) }
	p99 := func(s series) []float64 { return s.quantile(0, 0.99) }
	return []report.Row{
		{
			Figure: "durable creates, " + what, Unit: report.PerSecond, Bar: report.Bar{AtLeast: atLeast},
			Values: rate(s), CPU: s.perRequest(), Bases: base(rate), Broken: s.broken(),
		},
		{
			Figure: "– their p99", Unit: report.Milliseconds, Bar: report.Bar{AtMost: 50},
			Values: p99(s), Bases: base(p99), Broken: s.broken(),
		},
	}
}

func (b *Bench) createsEmpty(ctx context.Context) ([]report.Row, error) {
	all, err := b.rounds(ctx, append(b.createBase(-1, createConns),
		b.onEmpty("creates", -1, func(ctx context.Context, s *process.Server) (sample, error) {
			return b.drive(ctx, s, -1, creates(s.Addr, bare.CreatePath, createConns, 0))
		}),
		b.onEmpty("creates and clicks", -1, func(ctx context.Context, s *process.Server) (sample, error) {
			codes, err := seed(ctx, s, seeded)
			if err != nil {
				return sample{}, err
			}
			return b.besideClicks(ctx, s, seeded, func(i int) string { return codes[i] })
		}))...)
	if err != nil {
		return nil, err
	}
	return createsFigure("empty store", all, 10_000), nil
}

func (b *Bench) createsFilled(ctx context.Context) ([]report.Row, error) {
	links, err := b.filled(ctx, b.cfg.Links)
	if err != nil {
		return nil, err
	}
	all, err := b.rounds(ctx, append(b.createBase(-1, createConns),
		b.onFilled("creates", links, func(ctx context.Context, s *process.Server) (sample, error) {
			return b.drive(ctx, s, -1, creates(s.Addr, bare.CreatePath, createConns, 0))
		}),
		b.onFilled("creates and clicks", links, func(ctx context.Context, s *process.Server) (sample, error) {
			return b.besideClicks(ctx, s, min(clickedLinks, links.Count()), func(i int) string { return string(links.Code(i)) })
		}))...)
	if err != nil {
		return nil, err
	}
	return createsFigure(sizeName(links.Count()), all, 5_000), nil
}

// besideClicks creates at full speed while clicks arrive.
func (b *Bench) besideClicks(ctx context.Context, s *process.Server, n int, code func(i int) string) (sample, error) {
	return b.drive(ctx, s, -1, creates(s.Addr, bare.CreatePath, createConns, 0),
		redirects(s.Addr, clickConns, clicksBeside, popular(n, code)))
}

// createsFigure are the rows of two baselines, creates, and creates beside clicks.
func createsFigure(store string, all []series, atLeast float64) []report.Row {
	rows := createRows(fmt.Sprintf("%d connections, %s", createConns, store), all[2], all[:2], atLeast)
	rows = append(rows, createRows(fmt.Sprintf("the same while %d clicks/s arrive, %s", clicksBeside, store), all[3], all[:2], atLeast)...)
	return append(rows, report.Row{
		Figure: "– p99 of these clicks", Unit: report.Milliseconds,
		Values: all[3].quantile(1, 0.99), Broken: all[3].broken(),
	})
}

// oneCore pins the server to core 0 and the generator to core 1.
func (b *Bench) oneCore(ctx context.Context) ([]report.Row, error) {
	const conns, bar = 32, 7_000
	if runtime.NumCPU() < 2 {
		return []report.Row{{
			Figure: "durable creates on one core", Unit: report.PerSecond, Bar: report.Bar{AtLeast: bar},
			Broken: "not measured: server and generator need a core each",
		}}, nil
	}
	all, err := b.rounds(ctx, append(b.createBase(0, conns),
		b.onEmpty("creates on one core", 0, func(ctx context.Context, s *process.Server) (sample, error) {
			return b.drive(ctx, s, other(0), creates(s.Addr, bare.CreatePath, conns, 0))
		}))...)
	if err != nil {
		return nil, err
	}
	return createRows(fmt.Sprintf("one core, %d clients, empty store", conns), all[2], all[:2], bar), nil
}

// sizeName is "10 million links", or the number where it is no round million.
func sizeName(n int) string {
	const million = 1_000_000
	if n >= million && n%million == 0 {
		return fmt.Sprintf("%d million links", n/million)
	}
	return fmt.Sprintf("%d links", n)
}
