package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"curt/bench/internal/bare"
	"curt/bench/internal/figures"
	"curt/bench/internal/fill"
	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	backupHot    = 2_000 // redirects a second of links that the cache holds
	backupWrites = 200   // creates a second
)

// backup measures visitors and creates while the store is backed up, one backup after the
// other, and in the same rounds while it is not.
func backup(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	links, err := b.Filled(ctx, min(promisedStart, b.Config.Links))
	if err != nil {
		return nil, err
	}
	order := fill.NewOrder(links, rand.Uint64())
	hot := make([]string, figures.HotLinks)
	for i := range hot {
		hot[i] = string(order.Next())
	}
	never := func(*rand.Rand) string { return string(order.Next()) }
	drive := func(ctx context.Context, s *process.Server) (figures.Sample, error) {
		if err := enough(b, order, coldRate); err != nil {
			return figures.Sample{}, err
		}
		return b.Drive(ctx, s, -1, []load.Stream{
			figures.Redirects(s.Addr, figures.ClickConns, backupHot, figures.Popular(len(hot), func(i int) string { return hot[i] })),
			figures.Redirects(s.Addr, figures.ClickConns, coldRate, never),
			figures.Creates(s.Addr, bare.CreatePath, figures.ClickConns, backupWrites),
		}...)
	}
	all, err := b.Rounds(ctx, b.OnFilled("no backup", links, drive),
		b.OnFilled("backups", links, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
			taken := backups(ctx, b, links.Folder)
			r, err := drive(ctx, s)
			n, failed := taken()
			b.Say("%d backups were taken meanwhile", n)
			return r, errors.Join(err, failed)
		}))
	if err != nil {
		return nil, err
	}
	var rows []report.Row
	for i, what := range []string{
		fmt.Sprintf("redirects of %d links (%d/s)", figures.HotLinks, backupHot), fmt.Sprintf("cold redirects (%d/s)", coldRate),
		fmt.Sprintf("creates (%d/s)", backupWrites),
	} {
		for _, q := range []struct {
			name string
			of   float64
		}{{what + " p99 while " + figures.SizeName(links.Count()) + " are backed up", 0.99}, {"– p50", 0.5}, {"– p99.9", 0.999}} {
			rows = append(rows, report.Row{
				Figure: q.name, Unit: report.Milliseconds, Values: all[1].Quantile(i, q.of), Broken: all[1].Broken(),
				Bases: []report.Base{{Name: "no backup", Values: all[0].Quantile(i, q.of)}},
			})
		}
	}
	return rows, nil
}

// backups backs a data folder up again and again until taken is called, which returns how
// many backups were whole by then.
func backups(ctx context.Context, b *figures.Bench, data string) (taken func() (int, error)) {
	ctx, cancel := context.WithCancel(ctx)
	type end struct {
		n   int
		err error
	}
	ended := make(chan end, 1)
	go func() {
		var e end
		for to := filepath.Join(b.Config.Temp, "backup"); ctx.Err() == nil && e.err == nil; {
			_, err := process.Output(ctx, process.Command{Path: b.Config.Curt, Args: []string{"backup", "--data", data, to}, Core: -1})
			switch {
			case err == nil:
				e.n++
			case ctx.Err() == nil:
				e.err = err
			}
			e.err = errors.Join(e.err, os.RemoveAll(to), os.RemoveAll(to+".partial"))
		}
		ended <- e
	}()
	return func() (int, error) {
		cancel()
		e := <-ended
		return e.n, e.err
	}
}
