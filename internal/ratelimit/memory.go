package ratelimit

import (
	"context"
	"crypto/rand"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// shards keep 64 callers apart.
	shards = 64

	// shardBuckets bounds the buckets of a shard that are not full: a million in
	// all, which take 36 MB of heap (TestMemoryIsBounded).
	shardBuckets = 16_384

	// sampled buckets are looked at when one is added, so that the full ones, which
	// say nothing, go faster than new ones come.
	sampled = 4
)

// Memory is a Store in this process. Buckets are known by a 64-bit hash under a
// random key: a name costs nothing however long it is, and nobody can name a
// bucket that falls together with another's.
//
// Beyond a million buckets that are not full, a new one takes the place of one that
// is nearly full again: a limit forgets a little under such a flood, but neither
// memory nor the other callers' service gives way.
type Memory struct {
	key    HashKey
	start  sync.Once
	base   time.Time    // set by start; times are counted from it
	latest atomic.Int64 // the highest time seen
	shards [shards]shard
}

// shard holds the buckets whose hash ends in its number. Locks of several shards
// are taken in the order of their numbers.
type shard struct {
	mu    sync.Mutex
	full  map[uint64]int64 // guarded by mu
	spent map[uint64]Spent // guarded by mu: not stored; nil = nothing is (durable.go)
	_     [40]byte         // keeps neighbours out of one cache line
}

// NewMemory returns a Store whose buckets are all full.
func NewMemory() *Memory {
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	return newMemory(NewHashKey(secret[:]))
}

func newMemory(key HashKey) *Memory {
	m := &Memory{key: key}
	for i := range m.shards {
		m.shards[i].full = make(map[uint64]int64)
	}
	return m
}

// Spend implements Store. It never waits for anything but other callers. Times with
// a monotonic reading, as time.Now returns them, do not notice a clock that is set.
func (m *Memory) Spend(_ context.Context, now time.Time, charges []Charge) ([]Verdict, error) {
	for _, c := range charges {
		if err := c.Validate(); err != nil {
			return nil, err
		}
	}
	keys := make([]uint64, len(charges))
	for i, c := range charges {
		keys[i] = m.key.Sum(c.Bucket, "")
	}
	defer m.lock(keys)()
	return m.decide(m.monotonic(now), keys, charges), nil
}

// decide spends all charges or none. The shards of the keys are locked.
func (m *Memory) decide(now int64, keys []uint64, charges []Charge) []Verdict {
	verdicts, after, refused := make([]Verdict, len(charges)), make([]int64, len(charges)), false
	for i, c := range charges {
		full := m.shard(keys[i]).full[keys[i]]
		for j := range i { // an earlier charge of the same bucket
			if keys[j] == keys[i] {
				full = after[j]
			}
		}
		after[i], verdicts[i] = Take(full, now, c)
		refused = refused || !verdicts[i].Allowed
	}
	for i, c := range charges {
		if !refused {
			s, interval := m.shard(keys[i]), c.Limit.Interval()
			s.put(keys[i], after[i], now)
			if s.spent != nil && c.Cost > 0 {
				s.spend(Spent{keys[i], interval * time.Duration(c.Cost), interval * time.Duration(c.Limit.Burst)})
			}
		} else if verdicts[i].Allowed { // but not spent
			c.Cost = 0
			_, v := Take(m.shard(keys[i]).full[keys[i]], now, c)
			verdicts[i].Remaining, verdicts[i].ResetAfter = v.Remaining, v.ResetAfter
		}
	}
	return verdicts
}

// monotonic returns now in nanoseconds since the first call, never less than before.
func (m *Memory) monotonic(now time.Time) int64 {
	m.start.Do(func() { m.base = now })
	ns := int64(now.Sub(m.base))
	for {
		latest := m.latest.Load()
		if ns <= latest {
			return latest
		}
		if m.latest.CompareAndSwap(latest, ns) {
			return ns
		}
	}
}

func (m *Memory) shard(key uint64) *shard { return &m.shards[key%shards] }

// lock locks the shards of the keys, each once and in order.
func (m *Memory) lock(keys []uint64) (unlock func()) {
	if len(keys) == 1 {
		s := m.shard(keys[0])
		s.mu.Lock()
		return s.mu.Unlock
	}
	order := make([]uint64, len(keys))
	for i, k := range keys {
		order[i] = k % shards
	}
	slices.Sort(order)
	order = slices.Compact(order)
	for _, i := range order {
		m.shards[i].mu.Lock()
	}
	return func() {
		for _, i := range order {
			m.shards[i].mu.Unlock()
		}
	}
}

// put stores when a bucket is full again. The shard is locked.
func (s *shard) put(key uint64, full, now int64) {
	if _, known := s.full[key]; !known {
		s.clean(now)
	}
	if full > now {
		s.full[key] = full
	}
}

// clean drops the full ones of a few buckets, and when there is no room and none of
// them is full, the one that will be first. Iteration over a map starts anywhere.
func (s *shard) clean(now int64) {
	var victim uint64
	soonest, left := int64(math.MaxInt64), sampled
	for key, full := range s.full {
		if full <= now {
			delete(s.full, key)
		} else if full < soonest {
			victim, soonest = key, full
		}
		if left--; left == 0 {
			break
		}
	}
	if len(s.full) >= shardBuckets {
		delete(s.full, victim)
	}
}
