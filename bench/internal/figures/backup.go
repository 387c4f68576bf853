package figures

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"curt/bench/internal/bare"
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
func (b *Bench) backup(ctx context.Context) ([]report.Row, error) {
	links, err := b.filled(ctx, min(promisedStart, b.cfg.Links))
	if err != nil {
		return nil, err
	}
	order := fill.NewOrder(links, rand.Uint64())
	hot := make([]string, hotLinks)
	for i := range hot {
		hot[i] = string(order.Next())
	}
	never := func(*rand.Rand) string { return string(order.Next()) }
	drive := func(ctx context.Context, s *process.Server) (sample, error) {
		if err := b.enough(order, coldRate); err != nil {
			return sample{}, err
		}
		return b.drive(ctx, s, -1, []load.Stream{
			redirects(s.Addr, clickConns, backupHot, popular(len(hot), func(i int) string { return hot[i] })),
			redirects(s.Addr, clickConns, coldRate, never),
			creates(s.Addr, bare.CreatePath, clickConns, backupWrites),
		}...)
	}
	all, err := b.rounds(ctx, b.onFilled("no backup", links, drive),
		b.onFilled("backups", links, func(ctx context.Context, s *process.Server) (sample, error) {
			taken := b.backups(ctx, links.Folder)
			r, err := drive(ctx, s)
			n, failed := taken()
			b.say("%d backups were taken meanwhile", n)
			return r, errors.Join(err, failed)
		}))
	if err != nil {
		return nil, err
	}
	var rows []report.Row
	for i, what := range []string{
		fmt.Sprintf("redirects of %d links (%d/s)", hotLinks, backupHot), fmt.Sprintf("cold redirects (%d/s)", coldRate),
		fmt.Sprintf("creates (%d/s)", backupWrites),
	} {
		for _, q := range []struct {
			name string
			of   float64
		}{{what + " p99 while " + sizeName(links.Count()) + " are backed up", 0.99}, {"– p50", 0.5}, {"– p99.9", 0.999}} {
			rows = append(rows, report.Row{
				Figure: q.name, Unit: report.Milliseconds, Values: all[1].quantile(i, q.of), Broken: all[1].broken(),
				Bases: []report.Base{{Name: "no backup", Values: all[0].quantile(i, q.of)}},
			})
		}
	}
	return rows, nil
}

// backups backs a data folder up again and again until taken is called, which returns how
// many backups were whole by then.
func (b *Bench) backups(ctx context.Context, data string) (taken func() (int, error)) {
	ctx, cancel := context.WithCancel(ctx)
	type end struct {
		n   int
		err error
	}
	ended := make(chan end, 1)
	go func() {
		var e end
		for to := filepath.Join(b.cfg.Temp, "backup"); ctx.Err() == nil && e.err == nil; {
			_, err := process.Output(ctx, process.Command{Path: b.cfg.Curt, Args: []string{"backup", "--data", data, to}, Core: -1})
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
