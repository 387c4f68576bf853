package background

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// boosted is GOMAXPROCS during a boost, if the machine has fewer processors. Go does not look
	// at the network while a goroutine is ready that computes (runtime/proc.go, findRunnable), so
	// that on one processor redirects waited for Fold and for whole batches of roll-ups: up to
	// 1.5 s at p99. With a P for each of the two, one for a third or for the collector of garbage,
	// and one more, a thread always waits in epoll, and the kernel wakes it for each request.
	boosted = 4

	// boostKept is how long a boost outlasts its work: it bounds how often the world stops for a
	// change, some 20 µs each.
	boostKept = 5 * time.Millisecond

	// boostedToCollect is GOMAXPROCS during a collection of garbage: the runtime marks on each idle
	// P, and more of them would be more threads that redirects share a core with.
	boostedToCollect = 2
)

// booster raises GOMAXPROCS above the processors of the machine while work computes for long. It
// does not keep it raised, because a redirect costs 8 % more CPU with three Ps on one core:
// threads look for work that is not there (docs/decisions/0012).
type booster struct {
	working atomic.Int32
	needed  chan struct{} // the first of those at work began
	collect chan func()   // collections of garbage, for Run
	done    func()        // set once: a method value for each caller would be garbage
}

func newBooster() *booster {
	b := &booster{needed: make(chan struct{}, 1), collect: make(chan func())}
	b.done = func() { b.working.Add(-1) }
	return b
}

// boost boosts the process until done is called. It does not wait for the boost, which the
// collector of garbage may delay.
func (b *booster) boost() (done func()) {
	if b.working.Add(1) == 1 {
		select {
		case b.needed <- struct{}{}:
		default:
		}
		runtime.Gosched() // Run is next, even on a single P
	}
	return b.done
}

// doCollect runs f, which collects garbage, with boostedToCollect Ps, or within the current boost.
func (b *booster) doCollect(f func()) {
	done := make(chan struct{})
	select {
	case b.collect <- func() { defer close(done); f() }:
		<-done
	default: // Run is boosting, or has ended
		f()
	}
}

// Run boosts until ctx ends, then returns nil.
func (b *booster) Run(ctx context.Context) error {
	own := runtime.GOMAXPROCS(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.needed:
		case f := <-b.collect:
			runtime.GOMAXPROCS(max(own, boostedToCollect))
			f()
			runtime.GOMAXPROCS(own)
			continue
		}
		if own >= boosted {
			continue
		}
		runtime.GOMAXPROCS(boosted)
		b.untilIdle(ctx)
		runtime.GOMAXPROCS(own) // work that began meanwhile has filled needed
	}
}

// untilIdle returns at the first tick without work, or when ctx ends.
func (b *booster) untilIdle(ctx context.Context) {
	tick := time.NewTicker(boostKept)
	defer tick.Stop()
	for b.working.Load() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
