package background

import (
	"context"
	"iter"
	"sync/atomic"
	"time"
)

const (
	// Tick is how long an indexer sleeps when it has nothing to do.
	Tick = 500 * time.Millisecond

	// manyCreates and manyRedirects, a second, are a burst: the indexer waits. At
	// 500 creates/s, which it must keep up with, it takes a few per cent of a core.
	manyCreates   = 1000
	manyRedirects = 10_000

	// patience is how long a burst keeps the indexer from working: a load that never ends is no
	// burst. From then on it works one part in twenty.
	patience = 30 * time.Second

	// fewCreates and fewRedirects, a second, are too few for an indexer to be in their way.
	fewCreates   = 10
	fewRedirects = 100

	// idlePause, usualPause and burstPause are how long an indexer pauses, relative to its work.
	idlePause, usualPause, burstPause = 0, 1, 19
)

// Pace keeps an indexer out of the way of creates and redirects. The zero value is usable.
type Pace struct {
	creates atomic.Uint64

	// Owned by the goroutine that indexes.
	measured  time.Time // when the counters were read
	created   uint64
	redirects uint64
	burst     time.Time // when it began; zero = there is none
	quiet     bool      // there are few creates and redirects
}

// Created counts a create. It never blocks, and is safe for many goroutines.
func (p *Pace) Created() { p.creates.Add(1) }

// Wait returns when it is time to work: there is no burst, it has lasted for long, or crowded
// reports that too much work has piled up.
func (p *Pace) Wait(ctx context.Context, redirects func() uint64, crowded func() bool) {
	for p.measure(redirects()); !p.burst.IsZero() && time.Since(p.burst) < patience && !crowded() && ctx.Err() == nil; p.measure(redirects()) {
		Sleep(ctx, Tick)
	}
}

// measure measures the rates, over half a tick at least.
func (p *Pace) measure(redirects uint64) {
	now, created := time.Now(), p.creates.Load()
	passed := now.Sub(p.measured)
	if passed < Tick/2 {
		return
	}
	creates, asked := float64(created-p.created)/passed.Seconds(), float64(redirects-p.redirects)/passed.Seconds()
	p.quiet = !p.measured.IsZero() && creates <= fewCreates && asked <= fewRedirects
	switch {
	case p.measured.IsZero(), creates <= manyCreates && asked <= manyRedirects:
		p.burst = time.Time{}
	case p.burst.IsZero():
		p.burst = now
	}
	p.measured, p.created, p.redirects = now, created, redirects
}

// Pause sleeps after work, for a millisecond at least.
func (p *Pace) Pause(ctx context.Context, worked time.Duration) {
	factor := time.Duration(usualPause)
	switch {
	case !p.burst.IsZero():
		factor = burstPause
	case p.quiet:
		factor = idlePause
	}
	Sleep(ctx, max(time.Millisecond, factor*worked))
}

// Sleep returns true after d, or false when ctx ends before.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Ticks yields each d until ctx ends.
func Ticks(ctx context.Context, d time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				if !yield(now) {
					return
				}
			}
		}
	}
}

// Every is Ticks that also yields at once.
func Every(ctx context.Context, d time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		if yield(time.Now()) {
			Ticks(ctx, d)(yield)
		}
	}
}
