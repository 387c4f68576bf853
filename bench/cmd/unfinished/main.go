// Command unfinished measures what visitors notice while one address holds 20,000
// connections with requests that it never finishes, by kind, and what they cost in memory.
// scripts/bench-unfinished runs it.
//
// A round asks a server of its own for redirects, first without the attack, then with it: at a
// steady pace from another network, half on connections that stay, half on new ones. The attack comes
// from processes of their own, at a low priority, because what they take of the processors
// is no fault of the server's; what is closed is opened again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

type config struct {
	curt, temp          string
	only                []string // kinds; empty = those of the table
	held, rounds        int
	window              time.Duration
	rate                int // visits a second
	hold                string
	address, from, lane string
	elsewhere           bool // the attack goes to a server of its own
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c config
	flag.StringVar(&c.curt, "curt", "", "the binary of curt")
	flag.StringVar(&c.temp, "temp", os.TempDir(), "folder for data")
	only := flag.String("only", "", "kinds to measure, separated by commas; empty = all but those over TLS after its handshake")
	flag.IntVar(&c.held, "held", 20_000, "connections that are held")
	flag.IntVar(&c.rounds, "rounds", 5, "rounds")
	flag.DurationVar(&c.window, "window", 8*time.Second, "length of a measurement")
	flag.IntVar(&c.rate, "rate", 200, "visits a second")
	flag.StringVar(&c.lane, "lane", "on", "CURT_LANE")
	flag.StringVar(&c.hold, "hold", "", "be a process that holds connections of this kind")
	flag.StringVar(&c.address, "address", "", "with -hold: of the server")
	flag.StringVar(&c.from, "from", "127.0.0.2", "where the attack comes from")
	flag.BoolVar(&c.elsewhere, "elsewhere", false, "attack a second server, which nobody visits: what it costs that both share a machine")
	flag.Parse()
	if *only != "" {
		c.only = strings.Split(*only, ",")
	}
	var err error
	if c.hold != "" {
		err = hold(ctx, c)
	} else {
		err = run(ctx, c, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/cmd/unfinished:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to undo
	}
}

// found is what was measured of one kind, of each round.
type found struct {
	answered    []float64 // share of the visits
	p99, before []float64 // ms
	more        []float64 // MB
	held        []float64 // connections at the server
	evicted     []float64 // a second
}

func run(ctx context.Context, c config, out io.Writer) error {
	all := map[string]*found{}
	var names []string
	for _, k := range kinds() {
		if len(c.only) == 0 && !k.extra || slices.Contains(c.only, k.name) {
			names = append(names, k.name)
			all[k.name] = &found{}
		}
	}
	for round := range c.rounds {
		for _, name := range names {
			if err := c.round(ctx, name, all[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			f := all[name]
			fmt.Fprintf(os.Stderr, "round %d, %s: %.2f %% answered, p99 %.1f ms (%.1f ms without), %.0f MB more, %.0f held, %.0f closed a second\n",
				round+1, name, 100*f.answered[round], f.p99[round], f.before[round], f.more[round], f.held[round], f.evicted[round])
		}
	}
	m, err := process.Describe(c.temp)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%s, %d cores; %d connections from %s, CURT_LANE=%s, elsewhere=%t, medians of %d rounds\n\n", m.CPU, m.Cores, c.held, c.from, c.lane, c.elsewhere, c.rounds)
	_, _ = fmt.Fprintln(out, "| kind | held at once | answered (≥ 99 %) | p99 (≤ 3 × without, or 10 ms) | p99 without | memory more (≤ 256 MB) | |\n|---|---|---|---|---|---|---|")
	for _, name := range names {
		f := all[name]
		answered, p99, before, more := report.Median(f.answered), report.Median(f.p99), report.Median(f.before), report.Median(f.more)
		verdict := "missed"
		if answered >= 0.99 && p99 <= max(3*before, 10) && more <= 256 {
			verdict = "reached"
		}
		_, _ = fmt.Fprintf(out, "| %s | %.0f | %.2f %% | %.1f ms | %.1f ms | %.0f MB | %s |\n", name, report.Median(f.held), 100*answered, p99, before, more, verdict)
	}
	return nil
}

// round measures one kind on a server of its own.
func (c config) round(ctx context.Context, name string, f *found) (err error) {
	k, ok := kindOf(name)
	if !ok {
		return errors.New("no such kind")
	}
	s, err := c.serve(ctx, k)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	without, err := s.visits(ctx, c.rate, c.window)
	if err != nil {
		return err
	}
	attacked := s
	if c.elsewhere {
		if attacked, err = c.serve(ctx, k); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, attacked.stop()) }()
	}
	memory, err := process.RSS(attacked.process.PID)
	if err != nil {
		return err
	}
	end, err := c.attack(ctx, attacked, k)
	if err != nil {
		return err
	}
	defer end()
	evicted, err := attacked.metric(ctx, "curt_lane_evicted_total")
	if err != nil {
		return err
	}
	watch := attacked.watch(ctx)
	with, err := s.visits(ctx, c.rate, c.window)
	most, held, err2 := watch()
	now, err3 := attacked.metric(ctx, "curt_lane_evicted_total")
	if err = errors.Join(err, err2, err3); err != nil {
		return err
	}
	f.answered = append(f.answered, with.answered())
	f.p99, f.before = append(f.p99, with.p99()), append(f.before, without.p99())
	f.more = append(f.more, float64(most-memory)/(1<<20))
	f.held, f.evicted = append(f.held, held), append(f.evicted, (now-evicted)/c.window.Seconds())
	return nil
}
