// Package capture takes clicks from the redirect path into the click log. [Ring] holds them as
// bytes; [Capture] drains it every 50 ms, replaces addresses by visitor tags, drops what is
// not kept of headers (detail.go), and appends blocks to the log. [Tally] counts in memory
// that outlives the process what a kill takes.
//
// Read ring.go first, then capture.go.
package capture

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"

	"curt/internal/clicks"
	"curt/internal/clicks/useragent"
)

// defaultRingBytes holds 50,000 clicks of usual size (300 bytes): half a second
// of a machine at its limit, five times what Capture lets pass between two drains.
const defaultRingBytes = 16 << 20

// RingConfig sizes a Ring; the zero value is usable.
type RingConfig struct {
	Bytes  int // in all; 0 = defaultRingBytes
	Shards int // 0 = one per processor
}

// Ring takes clicks as bytes and holds them until Capture comes. Any number of
// goroutines may Record at once; one drains.
//
// Each shard is two halves: one is filled while the other is read, then they
// swap, so that the drain copies nothing and holds the lock for a swap only. The
// memory lies outside the Go heap and is touched only as far as clicks fill it:
// an idle ring costs no resident memory and does not move the collector's goal.
type Ring struct {
	shards  []shard
	wake    chan struct{}
	dropped atomic.Uint64
}

type shard struct {
	mu     sync.Mutex
	active []byte  // guarded by mu; length = filled, capacity = one half
	cur    int     // guarded by mu; which half is active
	woken  bool    // guarded by mu; the half-full wake was sent
	count  *uint64 // what it points to is guarded by mu: records since the start
	own    uint64  // that, unless a Tally has it

	halves  [2][]byte // set once in NewRing, both empty
	pending []byte    // owned by the drainer; taken, not yet released

	_ [64]byte // neighbours must not share a cache line
}

// NewRing returns an empty ring.
func NewRing(c RingConfig) *Ring {
	c.Bytes = cmp.Or(c.Bytes, defaultRingBytes)
	c.Shards = cmp.Or(c.Shards, runtime.GOMAXPROCS(0))
	half := max(c.Bytes/c.Shards/2, maxRingRecord)
	r := &Ring{shards: make([]shard, c.Shards), wake: make(chan struct{}, 1)}
	mem := untouched(r, 2*half*c.Shards)
	for i := range r.shards {
		s := &r.shards[i]
		for h := range s.halves {
			at := (2*i + h) * half
			s.halves[h] = mem[at : at : at+half]
		}
		s.active, s.count = s.halves[0], &s.own
	}
	return r
}

// The head of a record in the ring, little-endian: size of the whole record (u32),
// time (i64), address (16), user agent, referrer, query and domain lengths (u16
// each), language and code lengths, outcome, flags (u8 each); then the bytes in
// that order. Ring records never leave the process, so they carry no version.
const ringHead = 4 + 8 + 16 + 4*2 + 4 + 2

const maxRingRecord = ringHead + maxDomain + maxCode + useragent.MaxLength + maxReferrer + maxLanguage + maxQuery

// Record copies c into the ring and reports whether there was room; what finds
// none is counted by Dropped. It does not allocate, and waits at most for another
// Record of the same shard, which holds its lock for one copy.
func (r *Ring) Record(c *clicks.Raw) bool {
	s := r.lockOne()
	ok := s.put(c)
	wake := !s.woken && (!ok || len(s.active) > cap(s.active)/2)
	s.woken = s.woken || wake
	s.mu.Unlock()
	if wake {
		select {
		case r.wake <- struct{}{}:
		default: // one is waiting already
		}
	}
	if !ok {
		r.dropped.Add(1)
		return false
	}
	return true
}

// lockOne locks a shard that is free, or failing that the last one tried.
func (r *Ring) lockOne() *shard {
	n := uint32(len(r.shards))
	first := rand.Uint32N(n)
	for i := range n {
		s := &r.shards[(first+i)%n]
		if s.mu.TryLock() {
			return s
		}
	}
	s := &r.shards[first]
	s.mu.Lock()
	return s
}

// put appends the record; the caller holds mu.
func (s *shard) put(c *clicks.Raw) bool {
	ua, ref := cut(c.UserAgent, useragent.MaxLength), cut(c.Referrer, maxReferrer)
	query, domain := cut(c.Query, maxQuery), cut(c.Domain, maxDomain)
	lang, code := cut(c.Language, maxLanguage), cut(c.Code, maxCode)
	size := ringHead + len(ua) + len(ref) + len(query) + len(domain) + len(lang) + len(code)
	at := len(s.active)
	if cap(s.active)-at < size {
		return false
	}
	addr := c.Addr.As16()
	b := s.active[at : at+ringHead]
	binary.LittleEndian.PutUint32(b, uint32(size))
	binary.LittleEndian.PutUint64(b[4:], uint64(c.Time))
	copy(b[12:], addr[:])
	binary.LittleEndian.PutUint16(b[28:], uint16(len(ua)))
	binary.LittleEndian.PutUint16(b[30:], uint16(len(ref)))
	binary.LittleEndian.PutUint16(b[32:], uint16(len(query)))
	binary.LittleEndian.PutUint16(b[34:], uint16(len(domain)))
	b[36], b[37], b[38], b[39] = byte(len(lang)), byte(len(code)), byte(c.Outcome), byte(c.Flags)
	b[40], b[41] = c.Country[0], c.Country[1]
	b = append(append(append(b, ua...), ref...), query...)
	b = append(append(append(b, domain...), lang...), code...)
	s.active = s.active[:at+len(b)]
	*s.count++
	return true
}

// Recorded returns how many clicks found room since the start.
func (r *Ring) Recorded() (n uint64) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		n += *s.count
		s.mu.Unlock()
	}
	return n
}

// Dropped returns how many clicks found no room since the start.
func (r *Ring) Dropped() uint64 { return r.dropped.Load() }

// take swaps the halves of shard i and returns the filled one, which stays valid
// until release. What was taken and not released is returned again, so that a
// drain that failed begins where it was.
func (r *Ring) take(i int) []byte {
	s := &r.shards[i]
	if len(s.pending) > 0 {
		return s.pending
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = s.active
	s.cur = 1 - s.cur
	s.active, s.woken = s.halves[s.cur], false
	return s.pending
}

// release gives back what take returned, but for its tail rest.
func (r *Ring) release(i int, rest []byte) { r.shards[i].pending = rest }

// nextRing reads the first record of b and returns the rest. b was written by put
// in this process, so its lengths hold.
func nextRing(b []byte, c *clicks.Raw) (rest []byte) {
	size := binary.LittleEndian.Uint32(b)
	rest = b[size:]
	c.Time = int64(binary.LittleEndian.Uint64(b[4:]))
	c.Addr = netip.AddrFrom16([16]byte(b[12:28]))
	ua, ref := int(binary.LittleEndian.Uint16(b[28:])), int(binary.LittleEndian.Uint16(b[30:]))
	query, domain := int(binary.LittleEndian.Uint16(b[32:])), int(binary.LittleEndian.Uint16(b[34:]))
	lang, code := int(b[36]), int(b[37])
	c.Outcome, c.Flags = clicks.Outcome(b[38]), clicks.Flags(b[39])
	c.Country = [2]byte(b[40:42])
	b = b[ringHead:]
	c.UserAgent, b = b[:ua], b[ua:]
	c.Referrer, b = b[:ref], b[ref:]
	c.Query, b = b[:query], b[query:]
	c.Domain, b = b[:domain], b[domain:]
	c.Language, b = b[:lang], b[lang:]
	c.Code = b[:code]
	return rest
}

// What is kept of a request's headers, in bytes; the rest is cut off. Browsers
// send less: the longest user agents of in-app browsers are near 400 bytes, and a
// referrer that matters is a host. The sum bounds a click, so that attackers
// cannot fill the ring with a few requests.
const (
	maxReferrer = 512
	maxLanguage = 64
	maxQuery    = 512
	maxDomain   = 259 // a host name and its port, as link.Key allows
	maxCode     = 64  // link.MaxCode; only an orphan can be longer
)

func cut(b []byte, limit int) []byte { return b[:min(len(b), limit)] }
