package figures

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

// Config says what is measured, and how long.
type Config struct {
	Curt    string // the binary under measurement
	Against string // another binary that figures are compared with, where they say so; "" = none
	Self    string // this program, which serves the baselines
	Store   string // folder of the filled stores; kept
	Temp    string // folder for everything else, on the same file system
	Links   int    // of the big store

	Rounds   int
	Warmup   time.Duration // of each turn
	Measure  time.Duration // of each turn
	Settle   time.Duration // after a start, until memory is read
	Clicks   int           // folded in each round
	Progress io.Writer
}

// Bench takes figures, one after the other.
type Bench struct {
	Config Config
	count  *counts
}

// counts are shared by a Bench and those that differ in their window only.
type counts struct {
	folders int    // so far
	runs    uint64 // so far
}

// New returns a Bench.
func New(c Config) *Bench { return &Bench{Config: c, count: &counts{}} }

// WithWindow returns a Bench with another time of each measurement.
func (b *Bench) WithWindow(d time.Duration) *Bench {
	other := *b
	other.Config.Measure = d
	return &other
}

// NextSeed returns another seed for each run, so that each draws its own numbers.
func (b *Bench) NextSeed() uint64 {
	b.count.runs++
	return b.count.runs
}

// Figure is a group of rows that are measured together.
type Figure struct {
	Name string
	Take func(context.Context, *Bench) ([]report.Row, error)
}

// Turn is one thing that each round does once.
type Turn struct {
	Name string
	Run  func(context.Context) (Sample, error)
}

// Rounds takes all turns in each round.
func (b *Bench) Rounds(ctx context.Context, turns ...Turn) ([]Series, error) {
	all := make([]Series, len(turns))
	for round := range b.Config.Rounds {
		order := make([]int, len(turns))
		for i := range order {
			order[i] = i
		}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, i := range order {
			begin := time.Now()
			s, err := turns[i].Run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", turns[i].Name, round+1, err)
			}
			all[i] = append(all[i], s)
			b.Say("round %d of %d: %s, %.1f s%s", round+1, b.Config.Rounds, turns[i].Name, time.Since(begin).Seconds(), s.summary())
		}
	}
	return all, nil
}

// Say prints a line of progress.
func (b *Bench) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.Config.Progress, format+"\n", args...) // a terminal that went away needs no progress
}

// Drive sends load to a server and reads its CPU time at the window's borders.
// core pins the generator, -1 = any.
func (b *Bench) Drive(ctx context.Context, s *process.Server, core int, streams ...load.Stream) (r Sample, err error) {
	var clock [2]time.Duration
	var errs [2]error
	plan := load.Plan{
		Streams: streams, Warmup: b.Config.Warmup, Measure: b.Config.Measure, Seed: b.NextSeed(),
		Mark: func(begins bool) {
			i := 1
			if begins {
				i = 0
			}
			clock[i], errs[i] = process.CPU(s.PID)
		},
	}
	if core >= 0 {
		undo, err := process.PinSelf(core)
		if err != nil {
			return Sample{}, err
		}
		defer func() { err = errors.Join(err, undo()) }()
	}
	r.Outcome, err = load.Run(ctx, plan)
	r.ServerCPU = clock[1] - clock[0]
	return r, errors.Join(append(errs[:], err)...)
}
