package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

// figure is a row of the table.
type figure struct {
	name  string
	value float64
	unit  string
	bar   float64 // at most; 0 = recorded only
	notes string
}

// figures takes every figure, each part with servers of its own on the same links.
func (b *bench) figures(ctx context.Context, out io.Writer) error {
	var all []figure
	for _, part := range []struct {
		name string
		take func(context.Context) ([]figure, error)
	}{
		{"costs", b.costs},
		{"memories", b.memories},
		{"mixtures", b.mixtures},
		{"wholes", b.wholes},
		{"latencies", b.latencies},
	} {
		if len(b.cfg.parts) > 0 && !slices.Contains(b.cfg.parts, part.name) {
			continue
		}
		rows, err := part.take(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		all = append(all, rows...)
	}
	machine, err := process.Describe(b.folder)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%s, %d cores, %s, %s\n%d rounds of %s, %d links, %d connections\n\n| figure | value | bar | reached | |\n|---|---|---|---|---|\n",
		machine.CPU, machine.Cores, machine.Kernel, machine.Go, b.cfg.rounds, b.cfg.window, b.cfg.links, b.cfg.conns)
	for _, f := range all {
		bar, reached := "", ""
		if f.bar > 0 {
			bar, reached = fmt.Sprintf("≤ %.4g", f.bar), "yes"
			if f.value > f.bar {
				reached = "**no**"
			}
		}
		if _, err := fmt.Fprintf(out, "| %s | %.4g %s | %s | %s | %s |\n", f.name, f.value, f.unit, bar, reached, f.notes); err != nil {
			return err
		}
	}
	return nil
}

// among starts servers, warms them, lends them to f and stops them. fold is CURT_FOLD.
func (b *bench) among(ctx context.Context, fold string, names []string, f func(map[string]*server) error) error {
	// Clicks that the part before left behind would be counted in this one.
	for _, left := range []string{"clicks", "clicks.db", "clicks.db-wal", "clicks.db-shm"} {
		if err := os.RemoveAll(filepath.Join(b.links.Folder, left)); err != nil {
			return fmt.Errorf("remove the clicks of the part before: %w", err)
		}
	}
	b.cfg.fold, b.cfg.only = fold, names
	return b.lend(ctx, func(servers []*server) error {
		mixed := b.cfg.mixed
		b.cfg.mixed = false
		if err := b.warm(ctx, servers); err != nil {
			return err
		}
		b.cfg.mixed = mixed
		named := map[string]*server{}
		for _, s := range servers {
			named[s.name] = s
		}
		return f(named)
	})
}

// ratio is the median of the ratios within each round, because the rounds' machines differ.
func ratio(a, b []float64) float64 {
	var all []float64
	for i := range min(len(a), len(b)) {
		all = append(all, a[i]/b[i])
	}
	return report.Median(all)
}

// costs is CPU a redirect, capture included and folding held back.
func (b *bench) costs(ctx context.Context) (rows []figure, err error) {
	for _, zipf := range []bool{false, true} {
		names, law := []string{"curt", "nginx", "nginx-log", "floor", "net/http"}, "uniform"
		if zipf {
			names, law = names[:4], "Zipf"
		}
		b.cfg.zipf = zipf
		err = b.among(ctx, "pause", names, func(s map[string]*server) error {
			for round := range b.cfg.rounds {
				for _, name := range names {
					if err := b.turn(ctx, s[name], round); err != nil {
						return err
					}
				}
			}
			for _, base := range []struct {
				name string
				bar  float64
			}{{"nginx-log", 0.95}, {"nginx", 1.05}, {"floor", 1.35}, {"net/http", 0}} {
				if s[base.name] == nil {
					continue
				}
				rows = append(rows, figure{
					"CPU ÷ " + base.name + ", " + law, ratio(s["curt"].micros, s[base.name].micros), "", base.bar,
					fmt.Sprintf("%.2f and %.2f µs", report.Median(s["curt"].micros), report.Median(s[base.name].micros)),
				})
			}
			rows = append(rows, figure{
				"memory under load, " + law, report.Median(s["curt"].memory) / 1e6, "MB", 150,
				fmt.Sprintf("at most %.1f", slices.Max(s["curt"].memory)/1e6),
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	b.cfg.zipf = false
	return rows, nil
}

// memories is what an idle connection costs.
func (b *bench) memories(ctx context.Context) (rows []figure, err error) {
	b.cfg.idle = 15_000
	err = b.among(ctx, "pause", []string{"curt"}, func(s map[string]*server) error {
		each, err := b.idle(ctx, s["curt"], io.Discard)
		rows = []figure{{"memory of an idle connection of 15,000", each / 1024, "KiB", 8, ""}}
		return err
	})
	return rows, err
}

// mixtures compares requests of all kinds on the same connections with hits alone.
func (b *bench) mixtures(ctx context.Context) (rows []figure, err error) {
	err = b.among(ctx, "pause", []string{"curt"}, func(all map[string]*server) error {
		hits, mixed := all["curt"], &server{name: "curt, mixed", process: all["curt"].process}
		b.cfg.mixed = true
		defer func() { b.cfg.mixed = false }()
		if err := b.turnOf(ctx, &server{name: "curt, mixed before", process: hits.process}, 0, b.cfg.mixedFor); err != nil {
			return err
		}
		for round := range b.cfg.rounds {
			for _, turn := range []struct {
				s     *server
				mixed bool
			}{{mixed, true}, {hits, false}} {
				b.cfg.mixed = turn.mixed
				if err := b.turn(ctx, turn.s, round); err != nil {
					return err
				}
			}
		}
		rows = []figure{{"1 % misses, 1 % 404, 0.1 % API ÷ all hits", ratio(mixed.micros, hits.micros), "", 1.15, "after " + b.cfg.mixedFor.String()}}
		return nil
	})
	return rows, err
}

// wholes is the CPU time of the whole process, until every click is counted and
// written.
func (b *bench) wholes(ctx context.Context) (rows []figure, err error) {
	b.cfg.zipf = true
	defer func() { b.cfg.zipf = false }()
	err = b.among(ctx, "on", []string{"curt", "nginx-log"}, func(s map[string]*server) error {
		for round := range 3 {
			for _, name := range []string{"curt", "nginx-log"} {
				if err := b.whole(ctx, s[name], round); err != nil {
					return err
				}
			}
		}
		rows = []figure{{
			"whole process until the statistics equal the answers ÷ nginx-log, Zipf", ratio(s["curt"].micros, s["nginx-log"].micros), "", 1.8,
			fmt.Sprintf("%.2f and %.2f µs", report.Median(s["curt"].micros), report.Median(s["nginx-log"].micros)),
		}}
		return nil
	})
	return rows, err
}

// whole loads a server for ten seconds and waits until curt has counted everything
// and written it. The requests of the warm-up are in.
func (b *bench) whole(ctx context.Context, s *server, round int) error {
	before, err := b.quiet(ctx, s)
	if err != nil {
		return err
	}
	began, err := process.CPU(s.process.PID)
	if err != nil {
		return err
	}
	asked := uint64(0)
	stream := b.redirects(s.process.Addr, b.cfg.conns, 0)
	next := stream.Next
	stream.Next = func(r []byte) []byte { asked++; return next(r) }
	o, err := load.Run(ctx, load.Plan{Streams: []load.Stream{stream}, Measure: 10 * time.Second, Seed: uint64(round)})
	if err := errors.Join(err, o.Wrong()); err != nil {
		return fmt.Errorf("%s, round %d: %w", s.name, round, err)
	}
	if s.name == "curt" {
		if err := b.await(ctx, s, before.clicks+asked); err != nil {
			return err
		}
	}
	ended, err := process.CPU(s.process.PID)
	s.micros = append(s.micros, float64((ended-began).Nanoseconds())/1000/float64(asked))
	return err
}

// latencies is p99 at half of saturation, curt and nginx at the same rate. Who is not
// asked is stopped meanwhile, so that nobody measures the other's background work.
func (b *bench) latencies(ctx context.Context) (rows []figure, err error) {
	for _, zipf := range []bool{true, false} {
		law := "uniform"
		if b.cfg.zipf = zipf; zipf {
			law = "Zipf"
		}
		names := []string{"curt", "nginx-log"}
		err = b.among(ctx, "on", names, func(s map[string]*server) error {
			saturation := &server{name: "curt, saturated", process: s["curt"].process}
			if err := b.turnOf(ctx, saturation, 0, 12*time.Second); err != nil {
				return err
			}
			if err := b.await(ctx, s["curt"], 0); err != nil {
				return err
			}
			b.cfg.rate = saturation.rate[0] / 2
			defer func() { b.cfg.rate = 0 }()
			for round := range 3 {
				for _, name := range names {
					// Longer than Fold's interval.
					if err := b.alone(ctx, s[name], slices.Collect(maps.Values(s)), round, 12*time.Second); err != nil {
						return err
					}
				}
			}
			ours, nginx := report.Median(s["curt"].p99)/1000, report.Median(s["nginx-log"].p99)/1000
			rows = append(rows, figure{
				"p99 at half of saturation, folding on, " + law, ours, "ms", min(2, 2*nginx),
				fmt.Sprintf("%.0f/s; nginx-log %.2f ms", b.cfg.rate, nginx),
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	b.cfg.zipf = false
	return rows, nil
}

// alone is a turn while the others are stopped.
func (b *bench) alone(ctx context.Context, s *server, others []*server, round int, window time.Duration) (err error) {
	for _, other := range others {
		if other == s {
			continue
		}
		if err := syscall.Kill(other.process.PID, syscall.SIGSTOP); err != nil {
			return fmt.Errorf("stop %s: %w", other.name, err)
		}
		defer func() { err = errors.Join(err, syscall.Kill(other.process.PID, syscall.SIGCONT)) }()
	}
	return b.turnOf(ctx, s, round, window)
}
