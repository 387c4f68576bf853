package cache

import (
	"time"

	"curt/internal/link"
)

// Recent is what a process knows of the change log, for its tests.
type Recent struct{ recent }

// What Recent remembers.
const (
	Remembered = remembered
	Unnumbered = unnumbered
	WarmWithin = warmWithin
)

// NewRecent returns one that remembers changes by key.
func NewRecent() *Recent {
	r := new(Recent)
	r.keep()
	return r
}

// Begin forgets everything up to the heads.
func (r *Recent) Begin(heads ...link.Sequence) { r.begin(heads) }

// Lost says that the position is not in the log any more.
func (r *Recent) Lost() { r.lost() }

// Head returns how far the log was heard.
func (r *Recent) Head() (link.Sequence, bool) { return first(r.head()) }

// first is of the first partition.
func first(h link.Heads, known bool) (link.Sequence, bool) { return h.At(0), known }

// Advance notes a change as a peer told it.
func (r *Recent) Advance(h uint64, ch link.Change) bool { return r.advance(h, ch) }

// Read notes a change as the log told it.
func (r *Recent) Read(h uint64, ch link.Change) { r.read(h, ch) }

// Heard notes a change whose place in the log is not known.
func (r *Recent) Heard(h uint64, v link.Version) { r.heard(h, v) }

// Before adds changes of a partition below what is known, and reports whether more are wanted.
func (r *Recent) Before(partition uint16, from link.Sequence, hashes []uint64, changes []link.Change) bool {
	r.before(partition, from, hashes, changes)
	_, wanted := r.Unknown()
	return wanted
}

// Unknown returns below what nothing is known of the first partition that is wanted.
func (r *Recent) Unknown() (link.Sequence, bool) {
	_, low, wanted := r.unknown()
	if !wanted {
		low = r.low.At(0)
	}
	return low, wanted
}

// Complete says that a partition has nothing more below.
func (r *Recent) Complete(partition uint16) { r.complete(partition) }

// Vouches reports whether a version is still true that was read as of heads.
func (r *Recent) Vouches(h uint64, v link.Version, asOf ...link.Sequence) bool {
	return r.vouches(h, v, asOf)
}

// AsOf returns a position that what is read from now on is not behind.
func (r *Recent) AsOf(now, lag time.Duration) (link.Sequence, bool) {
	return first(r.asOf(int64(now), int64(lag)))
}

// Settle notes the present position for Settled.
func (r *Recent) MarkCalm(now time.Duration) { r.markCalm(int64(now)) }

// Settled returns a position of a while ago.
func (r *Recent) CalmPosition() (link.Sequence, bool) { return first(r.calmPosition()) }

// Early is whether a reader loads an entry anew.
func Early(left, cost time.Duration, chance float64) bool { return early(left, cost, chance) }

// Collide puts what L1 holds of a key where another would be, as if both had one hash.
func (c *Tiered) Collide(held, other link.Key) {
	e := c.l1.peek(c.l1.hash.Of(held.Domain, held.Code), held)
	c.l1.entries.Set(c.l1.hash.Of(other.Domain, other.Code), e)
}
