package clicks

import (
	"slices"
	"strings"

	"curt/internal/link"
)

// deltaChunk is how many links a chunk of a batch holds: enough to make one
// statement per chunk cheap, few enough for the chunk to stay in the cache.
const deltaChunk = 64

// compared is how many keys are compared between two pauses: about 30 µs.
const compared = 256

// deltas walks the counts of a frozen aggregate; see Batch.Links. rest is called now and then.
func (a *aggregate) deltas(rest func(), yield func([]LinkDelta) bool) {
	order := make([]int32, 0, len(a.index))
	for _, i := range a.index {
		order = append(order, i)
	}
	n := 0
	slices.SortFunc(order, func(x, y int32) int {
		if n++; n%compared == 0 {
			rest()
		}
		return strings.Compare(a.at(x).key, a.at(y).key)
	})
	var s summer
	chunk := make([]LinkDelta, 0, deltaChunk)
	for part := range slices.Chunk(order, deltaChunk) {
		s.reset()
		chunk = chunk[:0]
		for _, i := range part {
			rest()
			chunk = append(chunk, a.delta(&s, i))
		}
		if !yield(chunk) {
			return
		}
	}
}

// delta returns what happened to the link whose first entry is i, valid until s is
// reset.
func (a *aggregate) delta(s *summer, i int32) LinkDelta {
	first := a.at(i)
	d := LinkDelta{Key: linkKey(first.key), Total: a.total(first), Buckets: s.buckets()}
	for q := first; ; q = a.at(q.next) {
		r := s.sum(a, q.clicks)
		if q.summed != nil {
			r.Add(q.summed)
		}
		r.Counts = q.counts.counts()
		d.Buckets = append(d.Buckets, BucketDelta{Bucket: Bucket{Quarter, q.ordinal}, Rollup: r})
		if q.next == 0 {
			break
		}
	}
	d.Buckets = withDays(d.Buckets)
	return d
}

// total returns the sums of the link whose first entry is given.
func (a *aggregate) total(first *linkCounts) Total {
	t := Total{Counts: first.counts.counts(), FirstSeen: first.first, LastClicked: first.last}
	for q := first; q.next != 0; {
		q = a.at(q.next)
		t.Counts.Add(q.counts.counts())
	}
	return t
}

// withDays appends the days of the quarters. A day of one quarter shares its
// roll-up, which is why stores leave out a day's minutes.
func withDays(quarters []BucketDelta) []BucketDelta {
	n := len(quarters)
	for _, q := range quarters[:n] {
		day := BucketAt(Day, q.Bucket.Start())
		i := slices.IndexFunc(quarters[n:], func(d BucketDelta) bool { return d.Bucket == day })
		if i < 0 {
			quarters = append(quarters, BucketDelta{Bucket: day, Rollup: q.Rollup})
			continue
		}
		sum := quarters[n+i].Rollup.clone()
		sum.Add(q.Rollup)
		quarters[n+i].Rollup = sum
	}
	return quarters
}

// clone returns a copy that Add may change. Values and minutes are only ever
// replaced by Add, or changed in place where they are the copy's own.
func (r *Rollup) clone() *Rollup {
	c := *r
	c.Minutes = slices.Clone(r.Minutes)
	c.Visitors = r.Visitors.clone()
	return &c
}

// Pending is the part of a link's counts that is in memory. It belongs to a
// reader's view if and only if the view's generation is smaller: every batch has
// one more than the batch before, and holds all that was in memory under it.
type Pending struct {
	Generation uint64
	Total      Total
	Rows       []BucketDelta
}

// Pending returns what is in memory of a link. Whoever adds it to stored rows MUST
// ask Fold first and the store afterwards: then what leaves memory in between is
// in the store, and its generation tells so.
func (f *Fold) Pending(k link.Key) []Pending {
	key := appendLinkKey(nil, k)
	f.mu.RLock()
	defer f.mu.RUnlock()
	var found []Pending
	for _, a := range []*aggregate{f.frozen, f.active} {
		if a == nil {
			continue
		}
		if i, ok := a.index[string(key)]; ok {
			var s summer
			d := a.delta(&s, i)
			found = append(found, Pending{a.state.Generation, d.Total, d.Buckets})
		}
	}
	return found
}

// PendingTotals calls add for every key that has counts in memory; see Pending.
func (f *Fold) PendingTotals(keys []link.Key, add func(i int, generation uint64, t Total)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var key []byte
	for _, a := range []*aggregate{f.frozen, f.active} {
		if a == nil {
			continue
		}
		for i, k := range keys {
			key = appendLinkKey(key[:0], k)
			if n, ok := a.index[string(key)]; ok {
				add(i, a.state.Generation, a.total(a.at(n)))
			}
		}
	}
}

// appendLinkKey appends what linkKey reads; nothing for the orphans.
func appendLinkKey(b []byte, k link.Key) []byte {
	if k == (link.Key{}) {
		return b
	}
	return AppendKey(b, string(k.Domain), string(k.Code))
}
