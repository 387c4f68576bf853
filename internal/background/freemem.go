package background

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// worthCollecting is the least that was allocated since the last collection.
	worthCollecting = 8 << 20
	// calm is the most that is allocated in a tick after the end of a burst. Redirects that hit
	// the cache and the capture of their clicks allocate less.
	calm = 1 << 20
	// calmTicks, a second each, end a burst.
	calmTicks = 3
)

// FreeMemory collects garbage once after each burst of allocations and returns the memory to the
// system, until ctx ends; then it returns nil. Redirects make no garbage: without it, garbage from
// filling the cache would stay until the runtime's own collection, two minutes later, and garbage
// made during that one for two minutes more (docs/decisions/0018).
func FreeMemory(ctx context.Context, y Yielder) error {
	samples := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/allocs:bytes"}}
	var b burst
	for range Ticks(ctx, time.Second) {
		metrics.Read(samples)
		if b.ended(samples[0].Value.Uint64(), samples[1].Value.Uint64()) {
			done := y.Boost()
			debug.FreeOSMemory()
			done()
		}
	}
	return nil
}

// burst tracks the allocations of the process.
type burst struct {
	cycles uint64 // collections so far
	base   uint64 // bytes allocated before the last of them
	last   uint64 // bytes allocated until the last tick
	ticks  int    // calm ones, in a row
}

// ended takes a tick's counters and reports whether a burst that is worth a collection has just
// ended. Allocations in the tick of a collection count as not yet collected: most of them were
// marked as live.
func (b *burst) ended(cycles, allocated uint64) bool {
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
