package cache

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"curt/internal/cache/floors"
	"curt/internal/cache/keyhash"
	"curt/internal/link"
)

// shards bounds how many keys share one mutex; a power of two.
const shards = 64

// l1 is what this process has in memory: entries, loads in flight, and floors. It does no I/O.
//
// Invariant: evictions aside, entries, flights and floors of a key are replaced only under
// the mutex of its shard, so no answer below an announced version enters, and each key has
// one flight at a time. Reads of entries take no lock.
type l1 struct {
	entries *otter.Cache[uint64, *Held] // read by each hit
	hash    keyhash.Hasher              // read by each hit

	clock        clock
	terms        terms
	lag          int64        // of Source.Lookup, in nanoseconds
	primaryUntil atomic.Int64 // until then each key is read by Get

	shards [shards]shard
}

// shard is the state of its share of the keys.
type shard struct {
	mu      sync.Mutex
	flights map[link.Key]*flight // guarded by mu
	floors  floors.Floors        // guarded by mu
}

// flight is one load of one key; all look-ups of the key wait for it.
//
// A flight meets changes by its floor: a change raises it, and an answer below it is
// discarded. So the moment at which the source read its answer does not matter.
type flight struct {
	done    chan struct{} // closed when held and err are set
	primary bool          // set once: the key changed lately, so a replica may be behind

	// Guarded by the shard's mutex until done is closed.
	void  bool         // everything may have changed: the read under way does not count
	floor link.Version // answers below are discarded
	held  *Held
	err   error
}

// find returns the entry of a key, fresh or not, and counts as a use of it.
func find[T ~string | ~[]byte](l *l1, h uint64, d link.Domain, code T) *Held {
	e, ok := l.entries.GetIfPresent(h)
	if !ok || string(e.Key.Code) != string(code) || e.Key.Domain != d {
		return nil
	}
	return e
}

// peek is find without counting as a use.
func (l *l1) peek(h uint64, k link.Key) *Held {
	e, ok := l.entries.GetEntryQuietly(h)
	if !ok || e.Value.Key != k {
		return nil
	}
	return e.Value
}

func (l *l1) shard(h uint64) *shard { return &l.shards[h%shards] }

// claim is the start of a load by a look-up that found have, nil for nothing. It returns
// the entry that replaced have meanwhile, or the flight of the key; with lead, the flight
// is new, and the caller ends it by finish or fail.
func (l *l1) claim(h uint64, k link.Key, have *Held) (e *Held, f *flight, lead bool) {
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := l.peek(h, k); e != nil && e != have {
		return e, nil, false
	}
	if f := s.flights[k]; f != nil {
		return nil, f, false
	}
	now := l.clock.now()
	f = &flight{done: make(chan struct{}), floor: s.floors.Of(k, now)}
	f.primary = f.floor > 0 || now < l.primaryUntil.Load()
	s.flights[k] = f
	return nil, f, true
}

// finish ends the flight with what was found, unless a change says that it is too
// old; then the next read is of the primary.
func (l *l1) finish(h uint64, k link.Key, f *flight, found answer, primary bool, ttl lifetimes) bool {
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	version := found.target.Version
	if f.void || version < f.floor {
		f.void = false // the next round begins after the event that voided this one
		return false
	}
	// A replica may be behind an earlier read; the primary's word is final.
	if e := l.peek(h, k); e != nil && version < e.Target.Version && !primary {
		return false
	}
	f.held = l.terms.hold(k, found, time.Now(), ttl)
	l.entries.Set(h, f.held)
	s.end(k, f)
	return true
}

// fail ends the flight without an answer. The entry stays, marked so that the next
// readers do not wait in vain.
func (l *l1) fail(h uint64, k link.Key, f *flight, err error) {
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, newer := errors.AsType[*link.NewerError](err)
	switch e := l.peek(h, k); {
	case e == nil || e.Missing:
	case newer: // the entry lacks what the link needs now
		l.entries.Invalidate(h)
	default:
		e.failed.Store(true)
		e.ask.Store(l.clock.now() + int64(retryAfter))
	}
	f.err = err
	s.end(k, f)
}

// end releases the waiting look-ups; s.mu is held.
func (s *shard) end(k link.Key, f *flight) {
	delete(s.flights, k)
	close(f.done)
}

// changed makes each answer below v impossible, for as long as a replica may lag.
func (l *l1) changed(h uint64, k link.Key, v link.Version) {
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.lag > 0 {
		now := l.clock.now()
		s.floors.Raise(k, v, now, now+l.lag)
	}
	l.outdate(s, h, k, v)
}

// created ends a cached "not found". It needs no floor: ErrNotFound is the primary's word.
func (l *l1) created(h uint64, k link.Key) {
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.outdate(s, h, k, 1)
}

// forget ends a cached "not found" of a link that the source does not have yet. A load in flight may have missed it.
func (l *l1) forget(h uint64, k link.Key) {
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flights[k]; f != nil {
		f.void = true
	}
	if e := l.peek(h, k); e != nil && e.Missing {
		l.entries.Invalidate(h)
	}
}

// outdate discards the entry below v and the answer below v of a load in flight; s.mu is held.
func (l *l1) outdate(s *shard, h uint64, k link.Key, v link.Version) {
	if f := s.flights[k]; f != nil {
		f.floor = max(f.floor, v)
	}
	if e := l.peek(h, k); e != nil && e.Target.Version < v {
		l.entries.Invalidate(h)
	}
}

// dropAll removes all entries; loads in flight are repeated, and for the lag each key is read by Get.
func (l *l1) dropAll() {
	for i := range l.shards {
		l.shards[i].mu.Lock()
	}
	l.primaryUntil.Store(l.clock.now() + l.lag)
	for i := range l.shards {
		for _, f := range l.shards[i].flights {
			f.void = true
		}
	}
	l.entries.InvalidateAll()
	for i := range l.shards {
		l.shards[i].mu.Unlock()
	}
}

// clock counts nanoseconds since New on the monotonic clock.
type clock struct{ start time.Time }

func (c clock) now() int64 { return int64(time.Since(c.start)) }

func (c clock) at(now time.Time) int64 { return int64(now.Sub(c.start)) }
