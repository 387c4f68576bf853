package cache

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"curt/internal/link"
)

const (
	// refreshAt is the part of an entry's freshness after which a reader asks for a
	// refresh, so that a link in use never falls due.
	refreshAt = 0.8
	// retryAfter spaces the refreshes of a key whose load failed or found no room.
	retryAfter = time.Second
	// heldBytes is what an entry costs besides its strings: the entry itself, its
	// node and its place in the hash table and in the sketch, all rounded up by the
	// allocator. TestBudgetIsHeld compares it with the heap.
	heldBytes = 320
)

// Held is what L1 knows of one key. Its exported fields never change after it
// entered L1, and nobody may change what they point to.
type Held struct {
	Key     link.Key
	Missing bool // the source has no such link

	failed atomic.Bool  // the last load of this key failed
	fresh  int64        // until then it is served without a question
	ask    atomic.Int64 // from then on a reader asks for a refresh
	stale  int64        // until then it is served when the source cannot be asked
	// Up to here it is what every hit reads, in one line of the processor's cache.

	Prepared Prepared    // by Config.Prepare
	Target   link.Target // zero when Missing
}

// terms is how long entries are believed, and what enters L1 of an answer.
//
// Invariant: an entry is complete when hold returns it; but for its marks of a failed load
// and of the next refresh it never changes.
type terms struct {
	clock   clock
	fresh   time.Duration                        // Config.Fresh
	stale   time.Duration                        // Config.Stale
	admit   func(link.Target) link.Target        // nil = all of it
	prepare func(link.Key, link.Target) Prepared // nil = none

	unwritten bool // as Config.Unwritten
}

// lifetimes bound how long links, and "not found", are served without a question.
type lifetimes struct{ links, missing time.Duration }

// hold returns the entry for what a load found at now.
func (t *terms) hold(k link.Key, found answer, now time.Time, ttl lifetimes) *Held {
	// A key may be cut from a request's target; a clone retains only the code.
	k.Code = link.Code(strings.Clone(string(k.Code)))
	at := t.clock.at(now)
	e := &Held{Key: k, Target: found.target, Missing: found.missing}
	if e.Missing {
		e.fresh = at + int64(ttl.missing)
		e.stale = e.fresh
		e.ask.Store(math.MaxInt64)
		return e
	}
	if t.admit != nil {
		e.Target = t.admit(e.Target)
	}
	fresh := min(t.freshness(e.Target, now), int64(ttl.links))
	if t.unwritten && e.Target.Version == 0 { // a ban reaches it only when it is asked for again, and so does its writer
		fresh = min(fresh, int64(ttl.missing))
	}
	e.fresh = at + fresh
	if e.stale = at + max(int64(t.stale), fresh); e.Target.Limited && !e.Target.Exhausted {
		e.stale = e.fresh // its last click may be spent while the source is slow
	}
	if t.unwritten && e.Target.Version == 0 {
		e.stale = e.fresh
	}
	e.ask.Store(at + int64(refreshAt*float64(fresh)))
	if t.prepare != nil {
		e.Prepared = t.prepare(k, e.Target)
		// A reader that compares the code needs the tail next: they lie side by side.
		both := string(k.Code) + e.Prepared.Tail
		e.Key.Code, e.Prepared.Tail = link.Code(both[:len(k.Code)]), both[len(k.Code):]
		e.Target.Destination = shared(e.Target.Destination, e.Prepared.Tail)
	}
	return e
}

// shared returns s as a part of whole, if it is one, so that its own bytes can go: a
// prepared answer says the destination once more.
func shared(s, whole string) string {
	if i := strings.Index(whole, s); i >= 0 {
		return whole[i : i+len(s)]
	}
	return s
}

// freshness is Config.Fresh ±10 %, and not past the link's expiry: the state at the
// expiry is computed by whoever reads the target, but an owner who moved the date
// is heard at the latest then. A link with a bound of clicks is never fresh: visitors
// who spend one ask the store anyway, and those who do not (HEAD, prefetches, bots)
// must not be shown where a link led once its last click is spent. Only what says that it is spent is
// served stale.
func (t *terms) freshness(to link.Target, now time.Time) int64 {
	if to.Limited {
		return 0
	}
	fresh := float64(t.fresh) * (0.9 + 0.2*rand.Float64())
	if left := to.Expires - now.UnixMilli(); to.Expires != 0 && left > 0 {
		fresh = min(fresh, float64(left)*float64(time.Millisecond))
	}
	return int64(fresh)
}

// weigh is the bytes that an entry costs; heads are shared. A destination that lies in
// its prepared answer counts twice: the budget rather holds less than more.
func weigh(_ uint64, e *Held) uint32 {
	n := heldBytes + len(e.Key.Code) + len(e.Target.Destination) + len(e.Target.Fallback) +
		len(e.Prepared.Tail)
	return uint32(min(n, math.MaxUint32))
}

// answer is the entry as the result of a Lookup.
func (e *Held) answer() (link.Target, error) {
	if e.Missing {
		return link.Target{}, link.ErrNotFound
	}
	return e.Target, nil
}
