package lane

import "sync"

const (
	// scratchShards are the stacks of a scratches, so that goroutines on many cores
	// rarely meet at one.
	scratchShards = 16
	// scratchesKept bounds each: 3 MB in all. What is above is the collector's.
	scratchesKept = 32
)

// scratches are those that nobody uses. A sync.Pool would do, were it not emptied by
// each collection of garbage: then, of all moments, every connection needs memory, and
// pays for it by helping the collector, up to 40 ms.
type scratches struct{ shards [scratchShards]scratchStack }

type scratchStack struct {
	mu   sync.Mutex
	free []*scratch // guarded by mu

	_ [96]byte // shards lie in cache lines of their own
}

// get returns the scratch that was put last, for a connection of the shard.
func (p *scratches) get(shard uint32) *scratch {
	s := &p.shards[shard%scratchShards]
	s.mu.Lock()
	last := len(s.free) - 1
	if last < 0 {
		s.mu.Unlock()
		return new(scratch)
	}
	found := s.free[last]
	s.free[last] = nil
	s.free = s.free[:last]
	s.mu.Unlock()
	return found
}

// put takes a scratch that its user is done with; nil is none.
func (p *scratches) put(shard uint32, free *scratch) {
	if free == nil {
		return
	}
	s := &p.shards[shard%scratchShards]
	s.mu.Lock()
	if len(s.free) < scratchesKept {
		s.free = append(s.free, free)
	}
	s.mu.Unlock()
}
