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

	// calm and crowded are how much longer than it worked an indexer rests.
	calm, crowded = 1, 19
)

// pace keeps an indexer out of the way of creates and redirects.
type pace struct {
	creates atomic.Uint64

	// Owned by Run.
	looked    time.Time // when the counters were read
	created   uint64
	redirects uint64
	burst     time.Time // when it began; zero = there is none
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
	seconds := passed.Seconds()
	switch {
	case p.looked.IsZero(), float64(created-p.created)/seconds <= manyCreates && float64(redirects-p.redirects)/seconds <= manyRedirects:
		p.burst = time.Time{}
	case p.burst.IsZero():
		p.burst = now
	}
	p.looked, p.created, p.redirects = now, created, redirects
}

// rest sleeps after work, for a millisecond at least.
func (p *pace) rest(ctx context.Context, worked time.Duration) {
	factor := time.Duration(calm)
	if !p.burst.IsZero() {
		factor = crowded
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
