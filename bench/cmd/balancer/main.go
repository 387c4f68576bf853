// Command balancer measures curt's own CPU time per redirect behind HAProxy and without it, at the same rate
// and with the same number of connections, in rounds that take turns. HAProxy's own CPU time is shown apart.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/process"
)

// links is how many links are visited; all are in memory.
const links = 1000

// config is deploy/haproxy/haproxy.cfg as far as links and one server need it.
const config = `global
	nbthread 1
defaults
	mode http
	timeout connect 2s
	timeout client 60s
	timeout server 60s
	retries 2
	retry-on conn-failure empty-response
frontend public
	bind %s
	http-request set-header X-Forwarded-For %%[src]
	default_backend redirect
backend redirect
	http-reuse always
	server redirect-1 %s
`

func main() {
	curt := flag.String("curt", "bin/curt", "the binary under measurement")
	rate := flag.Float64("rate", 2000, "redirects per second")
	conns := flag.Int("conns", 32, "connections of clients")
	rounds := flag.Int("rounds", 5, "rounds")
	measure := flag.Duration("measure", 5*time.Second, "time of each measurement")
	flag.Parse()
	temp, err := os.MkdirTemp("", "curt-balancer-")
	if err == nil {
		b := figures.New(figures.Config{Curt: *curt, Temp: temp, Rounds: *rounds, Warmup: time.Second, Measure: *measure, Progress: os.Stderr})
		err = errors.Join(run(context.Background(), b, *conns, *rate), os.RemoveAll(temp))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "balancer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, b *figures.Bench, conns int, rate float64) (err error) {
	s, err := b.Serve(ctx, filepath.Join(b.Config.Temp, "data"), -1, "CURT_TRUSTED_PROXIES=127.0.0.1/32")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	codes, err := figures.Seed(ctx, s, links)
	if err != nil {
		return err
	}
	code := figures.Popular(links, func(i int) string { return codes[i] })
	front, pid, stop, err := haproxy(ctx, b.Config.Temp, s.Addr.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var own []float64 // HAProxy's µs per redirect
	all, err := b.Rounds(ctx,
		figures.Turn{Name: "alone", Run: func(ctx context.Context) (figures.Sample, error) {
			return b.Drive(ctx, s, -1, figures.Redirects(s.Addr, conns, rate, code))
		}},
		figures.Turn{Name: "behind HAProxy", Run: func(ctx context.Context) (figures.Sample, error) {
			before, err := process.CPU(pid)
			if err != nil {
				return figures.Sample{}, err
			}
			r, err := b.Drive(ctx, s, -1, figures.Redirects(front, conns, rate, code))
			after, failed := process.CPU(pid)
			// Its time has the warm-up in it, at the same rate.
			share := b.Config.Measure.Seconds() / (b.Config.Measure + b.Config.Warmup).Seconds()
			own = append(own, (after-before).Seconds()*1e6*share/float64(max(r.Answered(), 1)))
			return r, errors.Join(err, failed)
		}})
	if err != nil {
		return err
	}
	for _, series := range all {
		if text := series.Broken(); text != "" {
			return errors.New(text)
		}
	}
	alone, behind := middle(all[0].PerRequest()), middle(all[1].PerRequest())
	_, err = fmt.Printf("curt alone %.1f µs, behind HAProxy %.1f µs (× %.2f), HAProxy itself %.1f µs per redirect; medians of %d rounds\n",
		alone, behind, behind/alone, middle(own), b.Config.Rounds)
	return err
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// haproxy starts HAProxy in front of a server, and returns when it listens.
func haproxy(ctx context.Context, folder, server string) (at netip.AddrPort, pid int, stop func() error, err error) {
	text, err := figures.FreeAddr(ctx)
	if err == nil {
		at, err = netip.ParseAddrPort(text)
	}
	file := filepath.Join(folder, "haproxy.cfg")
	if err == nil {
		err = os.WriteFile(file, fmt.Appendf(nil, config, text, server), 0o600)
	}
	if err != nil {
		return at, 0, nil, err
	}
	// -W would fork; -db stays in front, and validates before it listens.
	cmd := exec.CommandContext(ctx, "haproxy", "-db", "-f", file) //nolint:gosec // our own file
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return at, 0, nil, fmt.Errorf("start haproxy: %w", err)
	}
	stop = func() error {
		err := cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // it ends by the signal
		return err
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := figures.CreateOne(ctx, at, "https://example.com/"); err == nil {
			return at, cmd.Process.Pid, stop, nil
		}
	}
	return at, 0, nil, errors.Join(errors.New("haproxy does not listen"), stop())
}
