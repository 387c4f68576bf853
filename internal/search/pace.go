package search

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// tick is how long an indexer that has nothing to do sleeps.
	tick = 500 * time.Millisecond

	// manyCreates and manyRedirects, a second, are a burst: the indexer waits. At
	// 500 creates/s, which it must keep up with, it takes a few per cent of a core.
	manyCreates   = 1000
	manyRedirects = 10_000

	// patience is how long a burst keeps the indexer from working: what never ends is
	// no burst. From then on it works one part in twenty.
	patience = 30 * time.Second

	// fewCreates and fewRedirects, a second, are nobody whom an indexer could be in the
	// way of.
	fewCreates   = 10
	fewRedirects = 100

	// alone, calm and crowded are how much longer than it worked an indexer rests.
	alone, calm, crowded = 0, 1, 19
)

// pace keeps an indexer out of the way of creates and redirects.
type pace struct {
	creates atomic.Uint64

	// Owned by Run.
	looked    time.Time // when the counters were read
	created   uint64
	redirects uint64
	burst     time.Time // when it began; zero = there is none
	quiet     bool      // there is hardly anybody
}

// wait returns when it is time to work: there is no burst, it has lasted for long, or
// there is too much to do.
func (p *pace) wait(ctx context.Context, redirects func() uint64, crowd func() bool) {
	for p.look(redirects()); !p.burst.IsZero() && time.Since(p.burst) < patience && !crowd() && ctx.Err() == nil; p.look(redirects()) {
		sleep(ctx, tick)
	}
}

// look measures the rates, over half a tick at least.
func (p *pace) look(redirects uint64) {
	now, created := time.Now(), p.creates.Load()
	passed := now.Sub(p.looked)
	if passed < tick/2 {
		return
	}
	creates, asked := float64(created-p.created)/passed.Seconds(), float64(redirects-p.redirects)/passed.Seconds()
	p.quiet = !p.looked.IsZero() && creates <= fewCreates && asked <= fewRedirects
	switch {
	case p.looked.IsZero(), creates <= manyCreates && asked <= manyRedirects:
		p.burst = time.Time{}
	case p.burst.IsZero():
		p.burst = now
	}
	p.looked, p.created, p.redirects = now, created, redirects
}

// rest sleeps after work, for a millisecond at least.
func (p *pace) rest(ctx context.Context, worked time.Duration) {
	factor := time.Duration(calm)
	switch {
	case !p.burst.IsZero():
		factor = crowded
	case p.quiet:
		factor = alone
	}
	sleep(ctx, max(time.Millisecond, factor*worked))
}

// sleep returns after d or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
