package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"curt/bench/internal/clickcost"
	"curt/bench/internal/figures"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

// zipfLinks are clicked with a popularity after Zipf's law.
const zipfLinks = 100_000

// clicks measures the pipeline behind the ring in a process of its own, on one
// core with one P, next to a process that writes the same clicks as log lines.
func clicks(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	all, err := b.Rounds(ctx, folding(b, "buffered log lines", "-base"), folding(b, "clicks folded"))
	if err != nil {
		return nil, err
	}
	broken := ""
	for _, s := range all[1] {
		broken = cmp.Or(broken, s.Clicks.Broken)
	}
	row := func(name string, u report.Unit, bar report.Bar, f func(clickcost.Cost) float64) report.Row {
		values := func(s figures.Series) []float64 {
			return s.Values(func(r figures.Sample) float64 { return f(r.Clicks) })
		}
		return report.Row{
			Figure: name, Unit: u, Bar: bar, Values: values(all[1]), Broken: broken,
			Bases: []report.Base{{Name: "buffered log line", Values: values(all[0])}},
		}
	}
	n := fmt.Sprintf("%d clicks, Zipf(1.0) over %d links", b.Config.Clicks, zipfLinks)
	return []report.Row{
		row("CPU per click, Ring to stored roll-up, "+n, report.Microseconds, report.Bar{AtMost: 6},
			func(c clickcost.Cost) float64 { return c.CPU.Seconds() * 1e6 / float64(c.Clicks) }),
		row("clicks folded on one core, raw clicks kept", report.PerSecond, report.Bar{AtLeast: 100_000},
			func(c clickcost.Cost) float64 { return float64(c.Clicks) / c.Wall.Seconds() }),
		row("– click log per click", report.Bytes, report.Bar{},
			func(c clickcost.Cost) float64 { return float64(c.LogBytes) / float64(c.Clicks) }),
	}, nil
}

// folding is a turn of the click cost process.
func folding(b *figures.Bench, name string, args ...string) figures.Turn {
	return figures.Turn{Name: name, Run: func(ctx context.Context) (r figures.Sample, err error) {
		data, drop, err := b.Folder()
		if err != nil {
			return figures.Sample{}, err
		}
		defer func() { err = errors.Join(err, drop()) }()
		out, err := process.Output(ctx, process.Command{
			Path: b.Config.Self, Core: 0, Env: []string{"GOMAXPROCS=1"},
			Args: append([]string{
				"clickcost", "-data", data,
				"-clicks", strconv.Itoa(b.Config.Clicks), "-links", strconv.Itoa(zipfLinks),
			}, args...),
		})
		if err != nil {
			return figures.Sample{}, err
		}
		if err := json.Unmarshal(out, &r.Clicks); err != nil {
			return figures.Sample{}, fmt.Errorf("read the cost: %w: %s", err, out)
		}
		return r, nil
	}}
}
