package issued

import (
	"hash/maphash"
	"sync"

	"curt/internal/link"
)

// filter is a set of codes that may say yes to a code that it does not hold, once
// in 2^32 look-ups per code of its shard (at 10 million codes 1 in 27,000), and
// never no to one that it holds. It keeps 32 bits of a seeded hash per code in open
// addressing, 5 to 10 bytes a code; a Bloom filter would be half of that but cannot
// grow.
type filter struct {
	seed   maphash.Seed
	shards [filterShards]filterShard
}

// filterShards keeps the pause of a growing table short: 10 million codes grow in
// steps of 160,000.
const filterShards = 64

type filterShard struct {
	mu    sync.RWMutex
	slots []uint32 // a power of two long; 0 = free; guarded by mu
	used  int      // guarded by mu
}

func newFilter() *filter { return &filter{seed: maphash.MakeSeed()} }

// locate splits the hash of a code: the shard, and what is kept there.
func (f *filter) locate(code link.Code) (*filterShard, uint32) {
	h := maphash.String(f.seed, string(code))
	return &f.shards[h>>58], max(uint32(h), 1)
}

func (f *filter) add(code link.Code) {
	s, mark := f.locate(code)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.slots)*3 <= s.used*4 { // more than three quarters full
		s.grow()
	}
	if put(s.slots, mark) {
		s.used++
	}
}

func (f *filter) has(code link.Code) bool {
	s, mark := f.locate(code)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.slots) == 0 {
		return false
	}
	mask := uint32(len(s.slots) - 1)
	for i := mark & mask; s.slots[i] != 0; i = (i + 1) & mask {
		if s.slots[i] == mark {
			return true
		}
	}
	return false
}

// len returns how many codes the filter tells apart.
func (f *filter) len() int {
	n := 0
	for i := range f.shards {
		s := &f.shards[i]
		s.mu.RLock()
		n += s.used
		s.mu.RUnlock()
	}
	return n
}

func (s *filterShard) grow() {
	slots := make([]uint32, max(16, 2*len(s.slots)))
	for _, mark := range s.slots {
		if mark != 0 {
			put(slots, mark)
		}
	}
	s.slots = slots
}

// put reports whether the mark is new.
func put(slots []uint32, mark uint32) bool {
	mask := uint32(len(slots) - 1)
	i := mark & mask
	for ; slots[i] != 0; i = (i + 1) & mask {
		if slots[i] == mark {
			return false
		}
	}
	slots[i] = mark
	return true
}
