package analytics

import (
	"context"
	"fmt"
	"slices"
	"time"

	"curt/internal/clicks/rollup"
)

// days are what the digests of a link's days know of their visitors.
type days struct {
	visitors map[uint32]uint64 // by the day's ordinal
	open     []uint32          // days whose visitors have to be counted from their rows
}

// walkDays calls f with the clicks of every quarter hour of r, in no order. It reads
// one row a day, and quarter hours only of days that have no whole digest.
func (v *view) walkDays(ctx context.Context, r span, f func(at time.Time, clicks, humans uint64)) (days, error) {
	found := days{visitors: map[uint32]uint64{}}
	if !r.from.Before(r.to) {
		return found, nil
	}
	within := func(at time.Time, clicks, humans uint64) {
		if !at.Before(r.from) && at.Before(r.to) {
			f(at, clicks, humans)
		}
	}
	stored, err := v.store.Read(ctx, v.key, 0, rollup.Span{
		Granularity: rollup.Day, First: rollup.BucketAt(rollup.Day, r.from).Ordinal, Last: rollup.BucketAt(rollup.Day, r.to.Add(-quarter)).Ordinal,
	})
	if err != nil {
		return found, unavailable(ctx, err)
	}
	var broken []rollup.Span
	for _, row := range stored.Rows {
		day := row.Bucket.Ordinal
		if !row.Digest.Adds(row.Rollup.Counts) {
			broken = append(broken, rollup.Span{Granularity: rollup.Quarter, First: day * 96, Last: day*96 + 95})
			found.open = append(found.open, day)
			continue
		}
		found.visitors[day] = row.Digest.Visitors
		for _, q := range row.Digest.Quarters {
			within(row.Bucket.Start().Add(time.Duration(q.Index)*quarter), q.Clicks, q.Humans)
		}
	}
	for _, p := range v.pending {
		if p.Generation <= stored.Generation {
			continue
		}
		for _, row := range p.Rows {
			if row.Bucket.Granularity != rollup.Quarter {
				continue
			}
			day := row.Bucket.Ordinal / 96
			if slices.ContainsFunc(broken, func(s rollup.Span) bool { return s.First == day*96 }) {
				continue // read below, with what is pending
			}
			delete(found.visitors, day)
			if !slices.Contains(found.open, day) {
				found.open = append(found.open, day)
			}
			within(row.Bucket.Start(), row.Rollup.Clicks, row.Rollup.Humans)
		}
	}
	if len(broken) > 0 {
		_, err = v.read(ctx, 0, broken, func(row rollup.BucketDelta) {
			within(row.Bucket.Start(), row.Rollup.Clicks, row.Rollup.Humans)
		})
	}
	return found, err
}

// count adds the visitors of the open days that are wanted to the others.
func (d *days) count(ctx context.Context, v *view, wanted func(day uint32) bool) error {
	var spans []rollup.Span
	for _, day := range d.open {
		if wanted(day) {
			spans = append(spans, rollup.Span{Granularity: rollup.Day, First: day, Last: day})
		}
	}
	if len(spans) == 0 {
		return nil
	}
	sets := map[uint32]*rollup.Visitors{}
	_, err := v.read(ctx, rollup.WantVisitors, spans, func(row rollup.BucketDelta) {
		if sets[row.Bucket.Ordinal] == nil {
			sets[row.Bucket.Ordinal] = new(rollup.Visitors)
		}
		sets[row.Bucket.Ordinal].Merge(row.Rollup.Visitors)
	})
	if err != nil {
		return fmt.Errorf("daily visitors: %w", err)
	}
	for day, set := range sets {
		d.visitors[day] = set.Count()
	}
	return nil
}

// visitorDays returns the sum of each day's visitors over a link's life.
func (v *view) visitorDays(ctx context.Context, first, now time.Time) (sum uint64, err error) {
	r := span{first.UTC().Truncate(day), now.UTC().Truncate(day).Add(day)}
	found, err := v.walkDays(ctx, r, func(time.Time, uint64, uint64) {})
	if err == nil {
		err = found.count(ctx, v, func(uint32) bool { return true })
	}
	for _, n := range found.visitors {
		sum += n
	}
	return sum, err
}

// maxVisitorBytes bounds what is read to count the visitors of steps that are no
// UTC days, some 25 ms. Steps of a longer series are Uncounted.
const maxVisitorBytes = 4 << 20

// count fills in the points' clicks and visitors.
func (s *series) count(ctx context.Context, v *view, r span) error {
	weight := make([]uint64, len(s.points)) // of the visitors of a step's quarters
	found, err := v.walkDays(ctx, r, func(at time.Time, clicks, humans uint64) {
		if i := s.at(at); i >= 0 {
			s.points[i].Clicks += clicks
			s.points[i].Humans += humans
			weight[i] += min(8*humans, 16<<10)
		}
	})
	if err != nil {
		return err
	}
	whole := map[uint32]int{} // steps that are UTC days, by day
	var fine []int
	var total uint64
	var spans []rollup.Span
	for i := range s.points {
		if s.points[i].Humans == 0 {
			continue
		}
		cover := buckets(clip(r, s.starts[i], s.starts[i+1]))
		if len(cover) == 1 && cover[0].Granularity == rollup.Day && cover[0].First == cover[0].Last {
			whole[cover[0].First] = i
			continue
		}
		fine, total = append(fine, i), total+weight[i]
		spans = append(spans, cover...)
	}
	if err := found.count(ctx, v, func(day uint32) bool { _, ok := whole[day]; return ok }); err != nil {
		return err
	}
	for day, i := range whole {
		s.points[i].Visitors = found.visitors[day]
	}
	if total > maxVisitorBytes {
		for _, i := range fine {
			s.points[i].Uncounted = true
		}
		return nil
	}
	if len(spans) == 0 {
		return nil
	}
	_, err = v.read(ctx, rollup.WantVisitors, spans, func(row rollup.BucketDelta) {
		if i := s.at(row.Bucket.Start()); i >= 0 {
			s.visitors[i].Merge(row.Rollup.Visitors)
		}
	})
	for _, i := range fine {
		s.points[i].Visitors = s.visitors[i].Count()
	}
	return err
}
