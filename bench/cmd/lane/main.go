// Command lane measures what a redirect costs: curt against nginx, with and without
// a log, against a bare loop on epoll (floor/floor.c), and against itself without the
// lane. scripts/bench-lane runs it.
//
// Every server has core 0 and the load core 1. All run at once and are asked in
// turns, so that a noisy neighbour hits all alike; the figure is CPU time of the
// process divided by answers, as /proc/PID/stat shows it, and the median over rounds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

type config struct {
	curt, against, floor, frontend, temp, fold, profile string
	only, parts                                         []string // empty = all
	rounds, links, conns, idle                          int
	window                                              time.Duration
	rate                                                float64
	zipf, mixed, table                                  bool
	mixedFor                                            time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c config
	flag.StringVar(&c.curt, "curt", "", "the binary of curt")
	flag.StringVar(&c.against, "against", "", "another binary of curt to compare with")
	flag.StringVar(&c.floor, "floor", "", "the binary of floor/floor.c")
	flag.StringVar(&c.frontend, "frontend", "", "the binary of ./cmd/frontend: compare with libraries, too")
	flag.StringVar(&c.temp, "temp", os.TempDir(), "folder for data and configuration")
	only := flag.String("only", "", "servers to measure, separated by commas; empty = all")
	flag.IntVar(&c.rounds, "rounds", 7, "turns of each server")
	flag.IntVar(&c.links, "links", 100_000, "codes that are asked for")
	flag.IntVar(&c.conns, "conns", 64, "keep-alive connections")
	flag.DurationVar(&c.window, "window", 3*time.Second, "length of a turn")
	flag.BoolVar(&c.zipf, "zipf", false, "popularity by Zipf's law instead of uniform")
	flag.Float64Var(&c.rate, "rate", 0, "arrivals a second of an open loop, for latency; 0 = closed loop")
	flag.StringVar(&c.fold, "fold", "pause", "CURT_FOLD")
	flag.BoolVar(&c.mixed, "mix", false, "1 % of links that were never asked for, 1 % that do not exist and 0.1 % calls of the API, on the same connections")
	flag.BoolVar(&c.table, "table", false, "take every figure with its bar, and nothing else")
	parts := flag.String("parts", "", "with -table: costs, memories, mixtures, wholes, latencies, separated by commas; empty = all")
	flag.DurationVar(&c.mixedFor, "mixed", 20*time.Second, "with -table: length of the mixed load before it is compared")
	flag.IntVar(&c.idle, "idle", 0, "measure the memory of so many idle connections to curt, and nothing else")
	flag.StringVar(&c.profile, "profile", "", "file for a CPU profile of curt under this load")
	flag.Parse()
	if *only != "" {
		c.only = strings.Split(*only, ",")
	}
	if *parts != "" {
		c.parts = strings.Split(*parts, ",")
	}
	if err := run(ctx, c, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench/cmd/lane:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to undo
	}
}

// server is one that is measured.
type server struct {
	name    string
	process *process.Server
	micros  []float64 // CPU per answer, of each round
	rate    []float64
	p99     []float64 // µs
	memory  []float64 // bytes, resident
}

func run(ctx context.Context, c config, out io.Writer) (err error) {
	folder, err := os.MkdirTemp(c.temp, "bench-lane-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b, err := newBench(ctx, c, folder)
	if err != nil {
		return err
	}
	if c.table {
		return b.figures(ctx, out)
	}
	return b.lend(ctx, func(servers []*server) error { return b.compare(ctx, servers, folder, out) })
}

// lend starts the servers, keeps this process off their core, and stops them behind f.
func (b *bench) lend(ctx context.Context, f func([]*server) error) (err error) {
	servers, err := b.start(ctx)
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.process.Stop())
		}
	}()
	if err != nil {
		return err
	}
	undo, err := process.PinSelf(1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	return f(servers)
}

// compare warms the servers, loads each in turn and prints one table of them.
func (b *bench) compare(ctx context.Context, servers []*server, folder string, out io.Writer) error {
	c := b.cfg
	if err := b.warm(ctx, servers); err != nil {
		return err
	}
	if c.idle > 0 {
		_, err := b.idle(ctx, servers[0], out)
		return err
	}
	for round := range c.rounds {
		for _, s := range servers {
			// What another counts in the background is not this one's latency.
			if err := b.alone(ctx, s, servers, round, b.cfg.window); err != nil {
				return err
			}
		}
	}
	if err := b.profile(ctx, servers); err != nil {
		return err
	}
	machine, err := process.Describe(folder)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, table(servers, c, machine))
	return err
}

// turn loads one server for a window.
func (b *bench) turn(ctx context.Context, s *server, round int) error {
	return b.turnOf(ctx, s, round, b.cfg.window)
}

func (b *bench) turnOf(ctx context.Context, s *server, round int, window time.Duration) error {
	var clocks [2]time.Duration
	var failed error
	o, err := load.Run(ctx, load.Plan{
		Streams: []load.Stream{b.redirects(s.process.Addr, b.cfg.conns, b.cfg.rate)},
		Warmup:  300 * time.Millisecond, Measure: window, Seed: uint64(round),
		Mark: func(begins bool) {
			cpu, err := process.CPU(s.process.PID)
			failed = errors.Join(failed, err)
			if begins {
				clocks[0] = cpu
			} else {
				clocks[1] = cpu
			}
		},
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("%s, round %d: %w", s.name, round, err)
	}
	if err := o.Wrong(); err != nil {
		return fmt.Errorf("%s, round %d: %w", s.name, round, err)
	}
	resident, err := process.RSS(s.process.PID)
	if err != nil {
		return err
	}
	s.memory = append(s.memory, float64(resident))
	s.micros = append(s.micros, float64((clocks[1]-clocks[0]).Nanoseconds())/1000/float64(o.Answered()))
	s.rate = append(s.rate, o.PerSecond(0))
	s.p99 = append(s.p99, float64(o.Streams[0].Latency.Quantile(0.99).Nanoseconds())/1000)
	return nil
}

// table prints medians, and the first server's ratio to each: of each round, because
// the rounds' machines differ.
func table(servers []*server, c config, m process.Machine) string {
	var t strings.Builder
	_, _ = fmt.Fprintf(&t, "%s, %d cores, %s, %s\n%d rounds of %s, %d links, %d connections, zipf %v, mixed %v, rate %.0f, fold %s, curt %s\n\n",
		m.CPU, m.Cores, m.Kernel, m.Go, c.rounds, c.window, c.links, c.conns, c.zipf, c.mixed, c.rate, c.fold, filepath.Base(c.curt))
	_, _ = t.WriteString("| server | CPU µs a redirect | redirects/s | p99 µs | curt ÷ it |\n|---|---|---|---|---|\n")
	for _, s := range servers {
		var ratios []float64
		for i := range s.micros {
			ratios = append(ratios, servers[0].micros[i]/s.micros[i])
		}
		_, _ = fmt.Fprintf(&t, "| %s | %.2f | %.0f | %.0f | %.3f |\n", s.name, report.Median(s.micros), report.Median(s.rate), report.Median(s.p99), report.Median(ratios))
	}
	return t.String()
}
