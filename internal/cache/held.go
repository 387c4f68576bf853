package cache

import (
	"hash/maphash"
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
	// deafMissing is how long "unknown" is believed while nobody is heard of those who make
	// links.
	deafMissing = time.Second
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

// hold makes the entry of what a load found at now.
func (c *Tiered) hold(k link.Key, found answer, now time.Time) *Held {
	// A key may be cut from a request's target; a clone keeps only the code alive.
	k.Code = link.Code(strings.Clone(string(k.Code)))
	at := int64(now.Sub(c.start))
	e := &Held{Key: k, Target: found.target, Missing: found.missing}
	if e.Missing {
		e.fresh = at + int64(c.missingFor())
		e.stale = e.fresh
		e.ask.Store(math.MaxInt64)
		return e
	}
	if c.cfg.Admit != nil {
		e.Target = c.cfg.Admit(e.Target)
	}
	fresh := c.freshness(e.Target, now)
	e.fresh = at + fresh
	e.stale = at + max(int64(c.cfg.Stale), fresh)
	e.ask.Store(at + int64(refreshAt*float64(fresh)))
	if c.cfg.Prepare != nil {
		e.Prepared = c.cfg.Prepare(k, e.Target)
		// Who compares the code needs the tail next: they lie side by side.
		both := string(k.Code) + e.Prepared.Tail
		e.Key.Code, e.Prepared.Tail = link.Code(both[:len(k.Code)]), both[len(k.Code):]
		e.Target.Destination = shared(e.Target.Destination, e.Prepared.Tail)
	}
	return e
}

// missingFor is how long "unknown" is believed now.
func (c *Tiered) missingFor() time.Duration {
	if c.Behind() > silence {
		return min(c.cfg.Missing, deafMissing)
	}
	return c.cfg.Missing
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
// must not be shown where a link led once its last click is spent.
func (c *Tiered) freshness(t link.Target, now time.Time) int64 {
	if t.Limited {
		return 0
	}
	fresh := float64(c.cfg.Fresh) * (0.9 + 0.2*rand.Float64())
	if left := t.Expires - now.UnixMilli(); t.Expires != 0 && left > 0 {
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

// hashString and hashBytes give the same hash for the same bytes. Nearly all keys
// are of the default domain, whose name is empty.
func (c *Tiered) hashString(d link.Domain, code link.Code) uint64 {
	return c.withDomain(maphash.String(c.seed, string(code)), d)
}

func (c *Tiered) hashBytes(d link.Domain, code []byte) uint64 {
	return c.withDomain(maphash.Bytes(c.seed, code), d)
}

func (c *Tiered) withDomain(h uint64, d link.Domain) uint64 {
	if d == "" {
		return h
	}
	return h ^ maphash.String(c.seed, string(d))*0x9e3779b97f4a7c15 // odd: a bijection, so that equal parts do not cancel out
}

// find returns what L1 holds of a key, fresh or not, and counts as a use of it.
func find[T ~string | ~[]byte](c *Tiered, h uint64, d link.Domain, code T) *Held {
	e, ok := c.l1.GetIfPresent(h)
	if !ok || string(e.Key.Code) != string(code) || e.Key.Domain != d {
		return nil
	}
	return e
}

// peek is find without counting as a use.
func (c *Tiered) peek(h uint64, k link.Key) *Held {
	e, ok := c.l1.GetEntryQuietly(h)
	if !ok || e.Value.Key != k {
		return nil
	}
	return e.Value
}
