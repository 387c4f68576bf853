package cache

import (
	"slices"
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
	at    link.Heads            // changes up to here were heard
	low   link.Heads            // and those up to here are forgotten
	whole link.Heads            // by partition, 1: all that it had below low was recalled, or as much as is kept
	byKey map[uint64]lastChange // by the hash of L1: keys of one hash share the greater version
	ring  []noted               // what is above low, those of a partition in order; modulo remembered
	first uint64                // the oldest of ring
	end   uint64                // behind its newest
	extra []uint64              // hashes of changes without a sequence, at most unnumbered
	next  int                   // the place in extra that is overwritten next
	past  trail                 // of asOf
	calm  trail                 // of calmPosition
}

// place is a change's sequence, with its partition in the lowest bits; 0 = not known yet.
type place uint64

func placeOf(ch *link.Change) place {
	return place(ch.Sequence)*link.MaxPartitions + place(ch.Partition)
}

func (p place) partition() uint16       { return uint16(p % link.MaxPartitions) }
func (p place) sequence() link.Sequence { return link.Sequence(p / link.MaxPartitions) }

// noted is a change in the ring.
type noted struct {
	h     uint64
	place place
}

type lastChange struct {
	version link.Version
	place   place
}

// position is how far the log was heard at a time of Tiered's clock.
type position struct {
	heads link.Heads
	at    int64
}

// trail knows a position of a while ago: the older of two that are at least so far apart.
type trail [2]position

// step notes the present position, unless the last one is younger than age.
func (t *trail) step(heads link.Heads, now, age int64) {
	if now-t[1].at >= age {
		t[0], t[1] = t[1], position{slices.Clone(heads), now}
	}
}

// before returns a position that was the present one at least age ago: it was that when the
// one after it was noted. Nobody changes it.
func (t *trail) before() (link.Heads, bool) { return t[0].heads, t[0].at > 0 }

// keep has changes remembered by key.
func (r *recent) keep() { r.keeps = true }

// begin forgets everything: what changed up to head is not known.
func (r *recent) begin(head link.Heads) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun, r.at, r.low = true, slices.Clone(head), slices.Clone(head)
	r.past, r.calm, r.whole = trail{}, trail{}, nil
	if r.keeps {
		r.byKey, r.ring, r.extra = map[uint64]lastChange{}, make([]noted, remembered), nil
		r.first, r.end, r.next = 0, 0, 0
	}
}

// head returns how far the log was heard.
func (r *recent) head() (at link.Heads, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.at), r.begun
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
	if !r.begun || ch.Sequence > r.at.At(ch.Partition)+1 || ch.Partition >= link.MaxPartitions {
		return false
	}
	r.note(h, ch)
	return true
}

// read notes a change as the log told it: whatever is between it and the last one of its
// partition is not in the log.
func (r *recent) read(h uint64, ch link.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ch.Sequence > r.at.At(ch.Partition)+1 {
		r.low = r.low.Set(ch.Partition, ch.Sequence-1)
	}
	r.note(h, ch)
}

// note goes on by one change; r.mu is held.
func (r *recent) note(h uint64, ch link.Change) {
	if ch.Sequence <= r.at.At(ch.Partition) {
		return
	}
	r.at = r.at.Set(ch.Partition, ch.Sequence)
	if !r.keeps {
		return
	}
	if r.end-r.first == remembered {
		oldest := r.ring[r.first%remembered]
		if p, s := oldest.place.partition(), oldest.place.sequence(); s > r.low.At(p) { // else it is below a hole
			r.low = r.low.Set(p, s)
		}
		r.forget(oldest.h, oldest.place)
		r.first++
	}
	at := placeOf(&ch)
	r.ring[r.end%remembered] = noted{h, at}
	r.end++
	r.byKey[h] = lastChange{max(ch.Version, r.byKey[h].version), at}
}

// unknown returns below which sequence changes of a partition are not known but wanted.
func (r *recent) unknown() (partition uint16, low link.Sequence, wanted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, low := range r.low {
		if p := uint16(i); r.begun && low > 0 && r.whole.At(p) == 0 {
			return p, low, true
		}
	}
	return 0, 0, false
}

// complete says that a partition has nothing more below.
func (r *recent) complete(partition uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.whole = r.whole.Set(partition, 1)
}

// before adds changes that lie right below what is known of a partition, in order; from is the
// sequence that they begin after.
func (r *recent) before(partition uint16, from link.Sequence, hashes []uint64, changes []link.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(changes)
	if n == 0 || changes[0].Sequence != from+1 || changes[n-1].Sequence != r.low.At(partition) || r.end-r.first+uint64(n) > remembered {
		r.whole = r.whole.Set(partition, 1)
		return
	}
	for i, ch := range slices.Backward(changes) {
		h, at := hashes[i], placeOf(&ch)
		r.first--
		r.ring[r.first%remembered] = noted{h, at}
		known, later := r.byKey[h]
		if later && (known.place != 0 || known.version > ch.Version) {
			at = known.place // that of a hint: its change is still to come
		}
		r.byKey[h] = lastChange{max(ch.Version, known.version), at}
	}
	r.low = r.low.Set(partition, from)
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
func (r *recent) forget(h uint64, at place) {
	if r.byKey[h].place == at {
		delete(r.byKey, h)
	}
}

// vouches reports whether version v of a key, read when the log was known up to asOf, is
// still true as far as this process heard.
func (r *recent) vouches(h uint64, v link.Version, asOf link.Heads) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun && asOf.Covers(r.low) && v >= r.byKey[h].version
}

// asOf returns a position that whatever is read from now on is not behind: the present one,
// or, of a source that lags, one of at least its lag ago.
func (r *recent) asOf(now int64, lag int64) (link.Heads, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lag == 0 {
		return slices.Clone(r.at), r.begun
	}
	r.past.step(r.at, now, lag)
	heads, known := r.past.before()
	return heads, known && r.begun
}

// markCalm notes the present position for calmPosition; the follower of the log calls it often.
func (r *recent) markCalm(now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun {
		r.calm.step(r.at, now, int64(warmWithin))
	}
}

// calmPosition returns a position of at least warmWithin ago: no change of a link that is younger
// than that lies at it or before.
func (r *recent) calmPosition() (link.Heads, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	heads, known := r.calm.before()
	return heads, known && r.begun
}
