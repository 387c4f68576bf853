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
	Curt  string // the binary under measurement
	Self  string // this program, which serves the baselines
	Store string // folder of the filled stores; kept
	Temp  string // folder for everything else, on the same file system
	Links int    // of the big store

	Rounds   int
	Warmup   time.Duration // of each turn
	Measure  time.Duration // of each turn
	Settle   time.Duration // after a start, until memory is read
	Clicks   int           // folded in each round
	Progress io.Writer
}

// Bench takes figures, one after the other.
type Bench struct {
	cfg  Config
	made int  // data folders so far
	seq  uint // of runs, so that each draws its own numbers
}

// New returns a Bench.
func New(c Config) *Bench { return &Bench{cfg: c} }

// Figure is a group of rows that are measured together.
type Figure struct {
	Name string
	Take func(context.Context) ([]report.Row, error)
}

// Figures returns all figures in the order in which they are taken.
func (b *Bench) Figures() []Figure {
	return []Figure{
		{"start", b.start},
		{"clicks", b.clicks},
		{"creates", b.createsEmpty},
		{"onecore", b.oneCore},
		{"cold", b.cold},
		{"creates-filled", b.createsFilled},
		{"backup", b.backup},
	}
}

// sample is what one turn measured. Fields that a turn does not measure are zero.
type sample struct {
	load.Outcome
	cpu      time.Duration // of the server within the window
	database time.Duration // of PostgreSQL, likewise
	startup  time.Duration
	rss      int64
	rssFirst int64 // in minute 5 of a soak
	clicks   clickCost
	shared   float64 // links that came from Redis
	stored   float64 // and from the link store
	dropped  float64 // clicks that curt lost because they came too fast
}

// turn is one thing that each round does once.
type turn struct {
	name string
	run  func(context.Context) (sample, error)
}

// series are the samples of one turn, one of each round.
type series []sample

// rounds takes all turns in each round.
func (b *Bench) rounds(ctx context.Context, turns ...turn) ([]series, error) {
	all := make([]series, len(turns))
	for round := range b.cfg.Rounds {
		order := make([]int, len(turns))
		for i := range order {
			order[i] = i
		}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, i := range order {
			begin := time.Now()
			s, err := turns[i].run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", turns[i].name, round+1, err)
			}
			all[i] = append(all[i], s)
			b.say("round %d of %d: %s, %.1f s%s", round+1, b.cfg.Rounds, turns[i].name, time.Since(begin).Seconds(), s.summary())
		}
	}
	return all, nil
}

func (b *Bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.cfg.Progress, format+"\n", args...) // a terminal that went away needs no progress
}

// summary is a sample in a line of progress.
func (s sample) summary() (text string) {
	for i := range s.Streams {
		l := &s.Streams[i].Latency
		text += fmt.Sprintf("; %.0f/s p50 %s p99 %s max %s", s.PerSecond(i), l.Quantile(0.5), l.Quantile(0.99), l.Max())
	}
	if n := s.Answered(); n > 0 {
		text += fmt.Sprintf("; CPU per request: server %s, generator %s", s.cpu/time.Duration(n), s.CPU/time.Duration(n))
	}
	if n := s.clicks.Clicks; n > 0 {
		text += fmt.Sprintf("; CPU per click %s, %.0f/s, %d batches", s.clicks.CPU/time.Duration(n), float64(n)/s.clicks.Wall.Seconds(), s.clicks.Batches)
	}
	if s.startup > 0 && s.rss > 0 {
		text += fmt.Sprintf("; ready after %s, %.1f MB", s.startup.Round(time.Millisecond/10), float64(s.rss)/1e6)
	}
	if err := s.Wrong(); err != nil {
		text += "; WRONG: " + err.Error()
	}
	return text
}

// drive sends load to a server and reads its CPU time at the window's borders.
// core pins the generator, -1 = any.
func (b *Bench) drive(ctx context.Context, s *process.Server, core int, streams ...load.Stream) (r sample, err error) {
	b.seq++
	var clock [2]time.Duration
	var errs [2]error
	plan := load.Plan{
		Streams: streams, Warmup: b.cfg.Warmup, Measure: b.cfg.Measure, Seed: uint64(b.seq),
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
			return sample{}, err
		}
		defer func() { err = errors.Join(err, undo()) }()
	}
	r.Outcome, err = load.Run(ctx, plan)
	r.cpu = clock[1] - clock[0]
	return r, errors.Join(append(errs[:], err)...)
}

func (s series) values(f func(sample) float64) []float64 {
	all := make([]float64, len(s))
	for i := range s {
		all[i] = f(s[i])
	}
	return all
}

// perSecond are the right answers of a stream.
func (s series) perSecond(stream int) []float64 {
	return s.values(func(r sample) float64 { return r.PerSecond(stream) })
}

// quantile is in milliseconds.
func (s series) quantile(stream int, q float64) []float64 {
	return s.values(func(r sample) float64 { return millis(r.Streams[stream].Latency.Quantile(q)) })
}

// perRequest is the server's CPU time in µs, over all streams.
func (s series) perRequest() []float64 {
	return s.values(func(r sample) float64 {
		return r.cpu.Seconds() * 1e6 / float64(max(r.Answered(), 1))
	})
}

// broken names what makes the series worthless, "" = nothing does.
func (s series) broken() string {
	var errs []error
	for i, r := range s {
		if err := r.Wrong(); err != nil {
			errs = append(errs, fmt.Errorf("round %d: %w", i+1, err))
		}
		if r.dropped > 0 {
			errs = append(errs, fmt.Errorf("round %d: %.0f clicks were dropped", i+1, r.dropped))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err.Error()
	}
	return ""
}

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }
