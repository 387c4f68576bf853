package fold

import (
	"slices"
	"strings"

	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// deltaChunk is how many links a chunk of a batch holds: enough to make one
// statement per chunk cheap, few enough for the chunk to stay in the cache.
const deltaChunk = 64

// compared is how many keys are compared between two pauses: about 30 µs.
const compared = 256

// deltas walks the counts of a frozen aggregate; see Batch.Links. yieldCPU is called now and then.
func (a *aggregate) deltas(yieldCPU func(), yield func([]rollup.LinkDelta) bool) {
	order := make([]int32, 0, len(a.index))
	for _, i := range a.index {
		order = append(order, i)
	}
	n := 0
	slices.SortFunc(order, func(x, y int32) int {
		if n++; n%compared == 0 {
			yieldCPU()
		}
		return strings.Compare(a.at(x).key, a.at(y).key)
	})
	var s summer
	chunk := make([]rollup.LinkDelta, 0, deltaChunk)
	for part := range slices.Chunk(order, deltaChunk) {
		s.reset()
		chunk = chunk[:0]
		for _, i := range part {
			yieldCPU()
			chunk = append(chunk, a.delta(&s, i))
		}
		if !yield(chunk) {
			return
		}
	}
}

// delta returns what happened to the link whose first entry is i, valid until s is
// reset.
func (a *aggregate) delta(s *summer, i int32) rollup.LinkDelta {
	first := a.at(i)
	d := rollup.LinkDelta{Key: clicklog.LinkKey([]byte(first.key)), Total: a.total(first), Buckets: s.buckets()}
	for q := first; ; q = a.at(q.next) {
		r := s.sum(a, q.clicks)
		if q.summed != nil {
			r.Add(q.summed)
		}
		r.Counts = q.counts.counts()
		d.Buckets = append(d.Buckets, rollup.BucketDelta{Bucket: rollup.Bucket{Granularity: rollup.Quarter, Ordinal: q.ordinal}, Rollup: r})
		if q.next == 0 {
			break
		}
	}
	d.Buckets = withDays(d.Buckets)
	return d
}

// total returns the sums of the link whose first entry is given.
func (a *aggregate) total(first *linkCounts) rollup.Total {
	t := rollup.Total{Counts: first.counts.counts(), FirstSeen: first.first, LastClicked: first.last}
	for q := first; q.next != 0; {
		q = a.at(q.next)
		t.Counts.Add(q.counts.counts())
	}
	return t
}

// withDays appends the days of the quarters. A day of one quarter shares its
// roll-up, which is why stores leave out a day's minutes.
func withDays(quarters []rollup.BucketDelta) []rollup.BucketDelta {
	n := len(quarters)
	for _, q := range quarters[:n] {
		day := rollup.BucketAt(rollup.Day, q.Bucket.Start())
		i := slices.IndexFunc(quarters[n:], func(d rollup.BucketDelta) bool { return d.Bucket == day })
		if i < 0 {
			quarters = append(quarters, rollup.BucketDelta{Bucket: day, Rollup: q.Rollup})
			continue
		}
		sum := quarters[n+i].Rollup.Clone()
		sum.Add(q.Rollup)
		quarters[n+i].Rollup = sum
	}
	return quarters
}

// Pending is the part of a link's counts that is in memory. It belongs to a
// reader's view if and only if the view's generation is smaller: every batch has
// one more than the batch before, and holds all that was in memory under it.
type Pending struct {
	Generation uint64
	Total      rollup.Total
	Rows       []rollup.BucketDelta
}

// Pending returns what is in memory of a link. A caller that adds it to stored rows MUST
// ask Fold first and the store afterwards: then what leaves memory in between is
// in the store, and its generation tells so.
func (f *Fold) Pending(k link.Key) []Pending {
	key := clicklog.AppendLinkKey(nil, k)
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
func (f *Fold) PendingTotals(keys []link.Key, add func(i int, generation uint64, t rollup.Total)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var key []byte
	for _, a := range []*aggregate{f.frozen, f.active} {
		if a == nil {
			continue
		}
		for i, k := range keys {
			key = clicklog.AppendLinkKey(key[:0], k)
			if n, ok := a.index[string(key)]; ok {
				add(i, a.state.Generation, a.total(a.at(n)))
			}
		}
	}
}
