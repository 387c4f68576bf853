package cache

import (
	"sync"

	"curt/internal/link"
)

const (
	// remembered is how many changes of the log are known by key: a day of three in two
	// seconds. They take up to 6 MiB, once so many were heard.
	remembered = 1 << 17
	// unnumbered is how many changes may be known whose place in the log is not.
	unnumbered = 1 << 12
)

// recent knows how far the change log was heard, and which keys changed lately, so that
// what others keep of them can be told from what is still true. It is safe for many
// goroutines.
type recent struct {
	keeps bool // changes by key; set before use

	// Guarded by mu.
	mu    sync.Mutex
	begun bool                  // false = the log was not read yet
	at    link.Sequence         // changes up to here were heard
	low   link.Sequence         // and those up to here are forgotten
	byKey map[uint64]lastChange // by the hash of L1: keys of one hash share the greater version
	ring  []uint64              // the hash of each sequence above low, at its place modulo remembered
	extra []uint64              // hashes of changes without a sequence, at most unnumbered
	next  int                   // the place in extra that is overwritten next
	whole bool                  // all that the log had below at was recalled, or as much as is kept
	past  trail                 // of asOf
	calm  trail                 // of settled
}

type lastChange struct {
	version link.Version
	seq     link.Sequence // 0 = not known yet
}

// position is how far the log was heard at a time of Tiered's clock.
type position struct {
	seq link.Sequence
	at  int64
}

// trail knows a position of a while ago: the older of two that are at least so far apart.
type trail [2]position

// step notes the present position, unless the last one is younger than age.
func (t *trail) step(seq link.Sequence, now, age int64) {
	if now-t[1].at >= age {
		t[0], t[1] = t[1], position{seq, now}
	}
}

// before returns a position that was the present one at least age ago: it was that when the
// one after it was noted.
func (t *trail) before() (link.Sequence, bool) { return t[0].seq, t[0].at > 0 }

// keep has changes remembered by key.
func (r *recent) keep() { r.keeps = true }

// begin forgets everything: what changed up to head is not known.
func (r *recent) begin(head link.Sequence) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun, r.at, r.low = true, head, head
	r.past, r.calm, r.whole = trail{}, trail{}, head == 0
	if r.keeps {
		r.byKey, r.ring, r.extra, r.next = map[uint64]lastChange{}, make([]uint64, remembered), nil, 0
	}
}

// head returns how far the log was heard.
func (r *recent) head() (at link.Sequence, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at, r.begun
}

// lost says that the position is no more in the log: begin comes next.
func (r *recent) lost() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = false
}

// advance notes a change by its sequence. It returns false, and does nothing, where changes
// before it were not heard; one that was heard is nothing new.
func (r *recent) advance(h uint64, ch link.Change) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun || ch.Sequence > r.at+1 {
		return false
	}
	r.note(h, ch)
	return true
}

// read notes a change as the log told it: whatever is between it and the last one is not
// in the log.
func (r *recent) read(h uint64, ch link.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ch.Sequence > r.at+1 {
		r.low = ch.Sequence - 1
	}
	r.note(h, ch)
}

// note goes on by one change; r.mu is held.
func (r *recent) note(h uint64, ch link.Change) {
	if ch.Sequence <= r.at {
		return
	}
	r.at = ch.Sequence
	if !r.keeps {
		return
	}
	if r.at-r.low > remembered {
		r.low++
		r.forget(r.ring[r.low%remembered], r.low)
	}
	r.ring[r.at%remembered] = h
	r.byKey[h] = lastChange{max(ch.Version, r.byKey[h].version), ch.Sequence}
}

// unknown returns below which sequence changes are not known, and whether they are wanted.
func (r *recent) unknown() (low link.Sequence, wanted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.low, r.begun && !r.whole
}

// complete says that the log has nothing more below.
func (r *recent) complete() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.whole = true
}

// before adds changes that lie right below what is known, in order; from is the sequence
// that they begin after. It returns false where there is no more to add.
func (r *recent) before(from link.Sequence, hashes []uint64, changes []link.Change) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(changes)
	if n == 0 || changes[0].Sequence != from+1 || changes[n-1].Sequence != r.low || r.at-from > remembered {
		r.whole = true
		return false
	}
	for i, ch := range changes {
		r.ring[ch.Sequence%remembered] = hashes[i]
		if known, ok := r.byKey[hashes[i]]; ok && (known.seq == 0 || known.seq > ch.Sequence) {
			continue // what came later has the greater version
		}
		r.byKey[hashes[i]] = lastChange{ch.Version, ch.Sequence}
	}
	r.low, r.whole = from, from == 0
	return !r.whole
}

// heard notes a change whose place in the log is not known yet, such as a hint of the bus.
func (r *recent) heard(h uint64, v link.Version) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.keeps || !r.begun || r.byKey[h].version >= v {
		return
	}
	r.byKey[h] = lastChange{version: v}
	if len(r.extra) < unnumbered {
		r.extra = append(r.extra, h)
		return
	}
	r.forget(r.extra[r.next], 0)
	r.extra[r.next], r.next = h, (r.next+1)%unnumbered
}

// forget drops what is known of a key unless it changed again since; r.mu is held.
func (r *recent) forget(h uint64, seq link.Sequence) {
	if r.byKey[h].seq == seq {
		delete(r.byKey, h)
	}
}

// vouches reports whether version v of a key, read when the log was known up to asOf, is
// still true as far as this process heard.
func (r *recent) vouches(h uint64, v link.Version, asOf link.Sequence) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun && asOf >= r.low && v >= r.byKey[h].version
}

// asOf returns a position that whatever is read from now on is not behind: the present one,
// or, of a source that lags, one of at least its lag ago.
func (r *recent) asOf(now int64, lag int64) (link.Sequence, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lag == 0 {
		return r.at, r.begun
	}
	r.past.step(r.at, now, lag)
	seq, known := r.past.before()
	return seq, known && r.begun
}

// settle notes the present position for settled; whoever follows the log calls it often.
func (r *recent) settle(now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun {
		r.calm.step(r.at, now, int64(warmWithin))
	}
}

// settled returns a position of at least warmWithin ago: no change of a link that is younger
// than that lies at it or before.
func (r *recent) settled() (link.Sequence, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seq, known := r.calm.before()
	return seq, known && r.begun
}
