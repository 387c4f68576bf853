// Package compose has the terms in which the parts of a server are put together. Each package
// below it has the constructors of some capabilities: they take an [Env] and the capabilities that
// they stand on, and return theirs with a [Capability]. internal/server calls them from top to
// bottom, and runs and drains the list.
package compose

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"time"

	"curt/internal/background"
	"curt/internal/hosts"
	"curt/internal/repeatlog"
	"curt/internal/settings"
	"curt/internal/telemetry"
)

// Env is what every capability has from its process. It is set once.
type Env struct {
	settings.Settings

	Log        *slog.Logger
	Metrics    *telemetry.Metrics
	Traces     *telemetry.Traces // nil = off
	Background *background.Scheduler
	Hosts      *hosts.Current
	Loopback   bool             // the public socket is reached from this machine only
	Reload     <-chan os.Signal // each asks to read the operator's lists again; nil = none does
	Force      bool             // start although the write-ahead log of the links lost what was confirmed
	Version    string
	Began      time.Time
}

// Capability is what a server runs and drains. Its name is for errors.
type Capability struct {
	Name    string
	Loops   []Loop
	Ready   []Dependency
	Metrics func(*telemetry.Metrics) // registers; nil = none

	closers []func() error
}

// OnClose has Close call a function, after those that were added later.
func (c *Capability) OnClose(f func() error) { c.closers = append(c.closers, f) }

// Close closes what the constructor opened, in reverse. Also a constructor that fails returns its
// Capability, for this.
func (c *Capability) Close() error {
	var errs []error
	for _, f := range slices.Backward(c.closers) {
		errs = append(errs, f())
	}
	c.closers = nil
	return errors.Join(errs...)
}

// Count adds metrics.
func (c *Capability) Count(register func(*telemetry.Metrics)) {
	before := c.Metrics
	c.Metrics = func(m *telemetry.Metrics) {
		if before != nil {
			before(m)
		}
		register(m)
	}
}

// Run adds a loop to the support stage.
func (c *Capability) Run(name string, run func(context.Context) error) {
	c.Loops = append(c.Loops, Loop{Name: name, Run: run})
}

// Need adds a dependency.
func (c *Capability) Need(name string, required bool, state func() error) {
	c.Ready = append(c.Ready, Dependency{name, required, state})
}

// Loop runs until its context ends. One that ends by itself, with or without an error, stops the
// server.
type Loop struct {
	Name  string
	Stage Stage
	Run   func(context.Context) error
}

// Stage says when a loop ends. Stages end one after the other, so that each takes up what the one
// before leaves behind: the handlers' last clicks are captured, the last block is folded.
type Stage int

// The stages after the traffic, from the last to end.
const (
	Support Stage = iota // the other stages stand on it
	Fold                 // counts what is in the click log, or sends it to Kafka
	Capture              // takes clicks out of the ring into the log
	Stages  = iota
)

// Dependency is a store or service that the server needs for its work.
type Dependency struct {
	Name     string
	Required bool         // without it a server of this role is not ready
	State    func() error // nil = it answers; it does no I/O
}

// Retry calls step until ctx ends, with a pause between two calls. It logs a failure, at a level, when it
// begins, each minute, and when it is over. A step that returns ErrSkipped was not tried.
func Retry(ctx context.Context, log *slog.Logger, level slog.Level, failing, recovered string, step func(context.Context) (pause time.Duration, err error)) error {
	var failures repeatlog.Condition
	for ctx.Err() == nil {
		pause, err := step(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, ErrSkipped):
		case err != nil:
			failures.Log(ctx, time.Now(), log, level, failing, err)
		default:
			failures.LogRecovery(ctx, time.Now(), log, recovered)
		}
		background.Sleep(ctx, pause)
	}
	return nil
}

// ErrSkipped is of a step that Retry should call again without a word.
var ErrSkipped = errors.New("skipped")
