package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/figures/api"
	"curt/bench/internal/figures/codes"
	"curt/bench/internal/figures/embedded"
	"curt/bench/internal/figures/postgres"
	"curt/bench/internal/figures/redis"
	"curt/bench/internal/figures/stress"
	"curt/bench/internal/report"
)

// settings are the flags of `curtbench figures` and `curtbench api`.
type settings struct {
	command                               string
	curt, against, store, temp, only, out string
	links, rounds, clicks                 int
	warmup, measure, settle               time.Duration
	quick                                 bool
}

func parse(command string, rounds int, warmup, measure time.Duration, args []string, usage io.Writer) (settings, error) {
	s := settings{command: command}
	f := flag.NewFlagSet(command, flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&s.curt, "curt", "../bin/curt", "the binary to measure")
	f.StringVar(&s.against, "against", "", "another binary that the figure standby is compared with")
	f.StringVar(&s.store, "store", "", "folder that keeps the filled stores between runs; empty: a temporary one")
	f.StringVar(&s.temp, "temp", "/var/tmp", "folder of everything temporary; must lie on the disk that is measured")
	f.StringVar(&s.only, "only", "", "names of figures, separated by commas; empty: all")
	f.StringVar(&s.out, "out", "results", "folder of the dated table; empty: print only")
	f.IntVar(&s.links, "links", 10_000_000, "links in the big store")
	f.IntVar(&s.rounds, "rounds", rounds, "rounds of each figure")
	f.IntVar(&s.clicks, "clicks", 3_000_000, "clicks folded in each round")
	f.DurationVar(&s.warmup, "warmup", warmup, "load before each measurement")
	f.DurationVar(&s.measure, "measure", measure, "each measurement")
	f.DurationVar(&s.settle, "settle", 5*time.Second, "idle time before memory is read")
	f.BoolVar(&s.quick, "quick", false, "a smoke run of about a minute, printed only: its numbers are no figures")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if s.quick {
		s.out, s.links, s.rounds, s.clicks = "", min(s.links, 200_000), 1, 300_000
		s.warmup, s.measure, s.settle = 300*time.Millisecond, 1500*time.Millisecond, time.Second
	}
	if s.rounds < 1 || s.links < 1_000 || s.clicks < 1 || s.measure <= 0 {
		return s, errors.New("want at least one round, 1,000 links, one click and some time")
	}
	return s, nil
}

func figuresCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse("figures", 5, 2*time.Second, 10*time.Second, args, progress)
	if err != nil {
		return err
	}
	return measure(ctx, s, args, embedded.Figures(), out, progress)
}

func apiCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse("api", 3, time.Second, 3*time.Second, args, progress)
	if err != nil {
		return err
	}
	return measure(ctx, s, args, api.Figures(), out, progress)
}

func codesCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse("codes", 5, time.Second, 4*time.Second, args, progress)
	if err != nil {
		return err
	}
	return measure(ctx, s, args, codes.Figures(), out, progress)
}

func bulksCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse("bulks", 5, time.Second, 10*time.Second, args, progress)
	if err != nil {
		return err
	}
	return measure(ctx, s, args, stress.Bulks(), out, progress)
}

func expiryCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse("expiry", 1, 5*time.Second, time.Minute, args, progress)
	if err != nil {
		return err
	}
	return measure(ctx, s, args, stress.Expiry(), out, progress)
}

func postgresCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse("postgres", 3, time.Second, 5*time.Second, args, progress)
	if err != nil {
		return err
	}
	return measure(ctx, s, args, postgres.Figures(), out, progress)
}

func redisCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse("redis", 5, 300*time.Millisecond, 3*time.Second, args, progress)
	if err != nil {
		return err
	}
	return measure(ctx, s, args, redis.Figures(), out, progress)
}

func soakCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse("soak", 1, time.Second, time.Hour, args, progress)
	if err != nil {
		return err
	}
	return measure(ctx, s, args, stress.Soak(), out, progress)
}

// measure takes figures and publishes them.
func measure(ctx context.Context, s settings, args []string, all []figures.Figure, out, progress io.Writer) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	temp, err := os.MkdirTemp(s.temp, "curtbench-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if s.store == "" {
		s.store = filepath.Join(temp, "stores")
	}
	w, err := startWatch()
	if err != nil {
		return err
	}
	var r report.Report
	bench := figures.New(figures.Config{
		Curt: s.curt, Against: s.against, Self: self, Store: s.store, Temp: temp, Links: s.links, Rounds: s.rounds,
		Warmup: s.warmup, Measure: s.measure, Settle: s.settle, Clicks: s.clicks, Progress: progress,
	})
	if r.Rows, err = take(ctx, s, bench, all, progress); err != nil {
		return err
	}
	if r.Facts, err = w.facts(ctx, s, args, temp); err != nil {
		return err
	}
	r.Notes = notes(s.command)
	return publish(r, s, out, progress)
}

// take takes the chosen figures. A name that no figure has is an error: a run of
// nothing must not look like one that went well.
func take(ctx context.Context, s settings, bench *figures.Bench, all []figures.Figure, progress io.Writer) (rows []report.Row, err error) {
	chosen := make([]string, len(all))
	for i, f := range all {
		chosen[i] = f.Name
	}
	if s.only != "" {
		known := chosen
		chosen = strings.Split(s.only, ",")
		for _, name := range chosen {
			if !slices.Contains(known, name) {
				return nil, fmt.Errorf("no figure is called %q, there are %s", name, strings.Join(known, ", "))
			}
		}
	}
	for _, f := range all {
		if !slices.Contains(chosen, f.Name) {
			continue
		}
		_, _ = fmt.Fprintf(progress, "== %s\n", f.Name)
		group, err := f.Take(ctx, bench)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		rows = append(rows, group...)
	}
	return rows, nil
}

// publish prints the table and writes it. A broken figure is an error; a bar that
// was missed is a finding, which the table shows.
func publish(r report.Report, s settings, out, progress io.Writer) error {
	name, folder := time.Now().UTC().Format(time.DateOnly), s.out
	if s.command != "figures" {
		name += "-" + s.command
	}
	if i := slices.IndexFunc(r.Facts, func(f report.Fact) bool { return f.Name == "commit" }); i >= 0 {
		name += "-" + r.Facts[i].Value
	}
	r.Title = "Figures of " + name
	text := r.Markdown()
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	if folder != "" {
		path := filepath.Join(folder, name+".md")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // a table to be read by everybody
			return fmt.Errorf("write the table: %w", err)
		}
		_, _ = fmt.Fprintln(progress, "written to", path)
	}
	for _, row := range r.Rows {
		if row.Broken != "" {
			return fmt.Errorf("%s is broken: %s", row.Figure, row.Broken)
		}
	}
	return nil
}
