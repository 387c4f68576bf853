package figures

import (
	"context"
	"fmt"

	"curt/bench/internal/bare"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	CreateConns = 64
	ClickConns  = 32

	// Seeded links are clicked on an otherwise empty store.
	Seeded = 1_000
	// HotLinks are clicked where others are cold.
	HotLinks = 1_000
)

// CreateBase are the baselines of creates: HTTP alone, and a durable write that
// does not share its sync.
func (b *Bench) CreateBase(core, conns int) []Turn {
	on := func(name, path string) Turn {
		return b.OnBare(name, core, func(ctx context.Context, s *process.Server) (Sample, error) {
			return b.Drive(ctx, s, other(core), Creates(s.Addr, path, conns, 0))
		})
	}
	return []Turn{on("bare creates", bare.CreatePath), on("one fsync each", bare.FsyncPath)}
}

// other is the core of the generator when the server has one of its own.
func other(core int) int {
	if core < 0 {
		return -1
	}
	return core + 1
}

// CreateRows are throughput and latency of a series of creates. The series of the
// baselines are those of CreateBase.
func CreateRows(what string, s Series, bases []Series, atLeast float64) []report.Row {
	base := func(f func(Series) []float64) []report.Base {
		return []report.Base{
			{Name: "bare net/http", Values: f(bases[0]), CPU: bases[0].PerRequest()},
			{Name: "one fsync each", Values: f(bases[1]), CPU: bases[1].PerRequest()},
		}
	}
	rate := func(s Series) []float64 { return s.PerSecond(0) }
	p99 := func(s Series) []float64 { return s.Quantile(0, 0.99) }
	return []report.Row{
		{
			Figure: "durable creates, " + what, Unit: report.PerSecond, Bar: report.Bar{AtLeast: atLeast},
			Values: rate(s), CPU: s.PerRequest(), Bases: base(rate), Broken: s.Broken(),
		},
		{
			Figure: "– their p99", Unit: report.Milliseconds, Bar: report.Bar{AtMost: 50},
			Values: p99(s), Bases: base(p99), Broken: s.Broken(),
		},
	}
}

// SizeName is "10 million links", or the number where it is no round million.
func SizeName(n int) string {
	const million = 1_000_000
	if n >= million && n%million == 0 {
		return fmt.Sprintf("%d million links", n/million)
	}
	return fmt.Sprintf("%d links", n)
}
