package server

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// worthCollecting is how much must have been allocated since the last collection.
	worthCollecting = 8 << 20
	// calm is how little is allocated in a tick once a burst is over. Redirects that hit
	// and what captures their clicks allocate less.
	calm = 1 << 20
	// calmTicks, a second each, make a burst over.
	calmTicks = 3
)

// settler collects garbage once, after a burst of allocations, and gives the memory back.
// Redirects make no garbage, so that without it what filled the cache would stay with the
// process until the runtime's own collection, two minutes later, and what came while that
// one ran for two minutes more (docs/decisions/0018).
type settler struct {
	work func() (done func()) // lends processors for the collection
}

// Run collects until ctx ends, then returns nil.
func (s settler) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	samples := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/allocs:bytes"}}
	var b burst
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		metrics.Read(samples)
		if b.over(samples[0].Value.Uint64(), samples[1].Value.Uint64()) {
			done := s.work()
			debug.FreeOSMemory()
			done()
		}
	}
}

// burst follows what the process allocates.
type burst struct {
	cycles uint64 // collections so far
	base   uint64 // bytes that were allocated before the last of them
	last   uint64 // bytes that were allocated until the last tick
	ticks  int    // that were calm, in a row
}

// over takes a tick's counters and reports whether a burst that is worth a collection has just
// ended. What was allocated in the tick of a collection counts as not yet collected: most
// of it was marked as in use.
func (b *burst) over(cycles, allocated uint64) bool {
	if cycles != b.cycles {
		b.cycles, b.base = cycles, b.last
	}
	grown := allocated - b.last
	b.last = allocated
	if grown > calm {
		b.ticks = 0
		return false
	}
	b.ticks++
	return b.ticks == calmTicks && allocated-b.base >= worthCollecting
}
