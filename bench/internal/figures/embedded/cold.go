package embedded

import (
	"context"
	"fmt"
	"math/rand/v2"

	"curt/bench/internal/bare"
	"curt/bench/internal/figures"
	"curt/bench/internal/fill"
	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	coldRate  = 200   // cold redirects a second, whose latency is the figure
	clickRate = 5_000 // clicks a second under load
	writeRate = 2_000 // creates a second under load
)

// cold measures redirects of links that no cache of the process holds: each code
// is asked for once. The page cache of the kernel is as warm as the fill and the
// earlier rounds left it.
func cold(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	links, err := b.Filled(ctx, b.Config.Links)
	if err != nil {
		return nil, err
	}
	order := fill.NewOrder(links, rand.Uint64())
	never := func(*rand.Rand) string { return string(order.Next()) }
	fixed := func(*rand.Rand) string { return "0000000" }

	hot := make([]string, figures.HotLinks)
	for i := range hot {
		hot[i] = string(order.Next())
	}
	popularHot := figures.Popular(len(hot), func(i int) string { return hot[i] })

	idle := func(s *process.Server, code func(*rand.Rand) string) []load.Stream {
		return []load.Stream{figures.Redirects(s.Addr, figures.ClickConns, coldRate, code)}
	}
	busy := func(s *process.Server, code func(*rand.Rand) string) []load.Stream {
		return append(idle(s, code), figures.Creates(s.Addr, bare.CreatePath, figures.CreateConns, writeRate), figures.Redirects(s.Addr, figures.CreateConns, clickRate, popularHot))
	}
	// The hardest reading of the bar: each of the clicks is on a link that no cache holds.
	allCold := func(s *process.Server, code func(*rand.Rand) string) []load.Stream {
		return []load.Stream{
			figures.Redirects(s.Addr, figures.CreateConns, clickRate, code),
			figures.Creates(s.Addr, bare.CreatePath, figures.CreateConns, writeRate),
		}
	}
	type streams func(*process.Server, func(*rand.Rand) string) []load.Stream
	on := func(name string, of streams) figures.Turn {
		return b.OnFilled(name, links, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
			if err := enough(b, order, of(s, never)[0].Rate); err != nil {
				return figures.Sample{}, err
			}
			return b.Drive(ctx, s, -1, of(s, never)...)
		})
	}
	onBare := func(name string, of streams) figures.Turn {
		return b.OnBare(name, -1, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
			return b.Drive(ctx, s, -1, of(s, fixed)...)
		})
	}
	all, err := b.Rounds(ctx, onBare("bare redirects, idle", idle), on("cold redirects, idle", idle),
		onBare("bare redirects, load", busy), on("cold redirects, load", busy), on("all clicks cold", allCold))
	if err != nil {
		return nil, err
	}
	size := figures.SizeName(links.Count())
	load := fmt.Sprintf("%d creates/s, %d clicks/s", writeRate, clickRate)
	rows := coldRows(fmt.Sprintf("%s, idle (%d/s)", size, coldRate), all[1], all[0], 2)
	rows = append(rows, coldRows(fmt.Sprintf("%s, under %s", size, load), all[3], all[2], 5)...)
	rows = append(rows, report.Row{
		Figure: "– p99 of these creates", Unit: report.Milliseconds, Values: all[3].Quantile(1, 0.99), Broken: all[3].Broken(),
		Bases: []report.Base{{Name: "bare net/http", Values: all[2].Quantile(1, 0.99)}},
	})
	return append(rows, coldRows(fmt.Sprintf("%s, under %s, every click cold (no bar)", size, load), all[4], all[2], 0)...), nil
}

// enough makes sure that no code is asked for twice. Poisson arrivals stay far
// below a fifth more than their mean.
func enough(b *figures.Bench, o *fill.Order, rate float64) error {
	want := int(1.2*rate*(b.Config.Warmup+b.Config.Measure).Seconds()) + 100
	if o.Left() < want {
		return fmt.Errorf("%d links were never asked for, %d are wanted: fill more of them", o.Left(), want)
	}
	return nil
}

// coldRows are the latencies of the first stream.
func coldRows(what string, s, base figures.Series, atMost float64) []report.Row {
	row := func(name string, q float64) report.Row {
		return report.Row{
			Figure: name, Unit: report.Milliseconds, Values: s.Quantile(0, q), Broken: s.Broken(),
			Bases: []report.Base{{Name: "bare net/http", Values: base.Quantile(0, q)}},
		}
	}
	p99 := row("cold redirect p99, "+what, 0.99)
	if atMost > 0 {
		p99.Bar = report.Bar{AtMost: atMost}
	}
	p99.CPU, p99.Bases[0].CPU = s.PerRequest(), base.PerRequest()
	return []report.Row{p99, row("– p50", 0.5), row("– p99.9", 0.999)}
}
