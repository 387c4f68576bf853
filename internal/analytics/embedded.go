package analytics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/fold"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// Embedded is the Reader over stored roll-ups and what Fold holds in memory.
type Embedded struct {
	store rollup.Store
	fold  *fold.Fold
}

var _ Reader = (*Embedded)(nil)

// NewEmbedded returns a Reader over a store and the Fold that writes to it.
func NewEmbedded(store rollup.Store, fold *fold.Fold) *Embedded {
	return &Embedded{store: store, fold: fold}
}

// view is one link's counts at one moment. Memory is read when it is made and the
// store afterwards, so that a batch which is committed in between is missed by
// neither; each stored answer says which batches it includes, and the pending
// counts of those are left out. So nothing is locked while the store is asked.
type view struct {
	store     rollup.Store
	key       link.Key
	pending   []fold.Pending
	freshness rollup.Freshness
}

func (e *Embedded) view(k link.Key) view {
	f := e.fold.Freshness() // before the counts: they are at least as fresh
	return view{store: e.store, key: k, pending: e.fold.Pending(k), freshness: f}
}

// read calls f with every row of the spans; a bucket may come in several rows. It
// returns the link's total.
func (v *view) read(ctx context.Context, want rollup.Want, spans []rollup.Span, f func(rollup.BucketDelta)) (rollup.Total, error) {
	stored, err := v.store.Read(ctx, v.key, want, spans...)
	if err != nil {
		return rollup.Total{}, unavailable(ctx, err)
	}
	for _, row := range stored.Rows {
		f(row)
	}
	for _, p := range v.pending {
		if p.Generation <= stored.Generation {
			continue
		}
		stored.Total.Add(p.Total)
		for _, row := range p.Rows {
			if slices.ContainsFunc(spans, func(s rollup.Span) bool { return holds(s, row.Bucket) }) {
				f(row)
			}
		}
	}
	return stored.Total, nil
}

// sum adds the dimensions of every row of the spans to the sums.
func (v *view) sum(ctx context.Context, into *rollup.Sums, spans []rollup.Span) error {
	generation, err := v.store.Sum(ctx, v.key, into, spans...)
	if err != nil {
		return unavailable(ctx, err)
	}
	for _, p := range v.pending {
		if p.Generation <= generation {
			continue
		}
		for _, row := range p.Rows {
			if slices.ContainsFunc(spans, func(s rollup.Span) bool { return holds(s, row.Bucket) }) {
				into.Add(row.Rollup)
			}
		}
	}
	return nil
}

func holds(s rollup.Span, b rollup.Bucket) bool {
	return s.Granularity == b.Granularity && s.First <= b.Ordinal && b.Ordinal <= s.Last
}

func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// none is for reading a total only.
func none(rollup.BucketDelta) {}

// Totals implements Reader.
func (e *Embedded) Totals(ctx context.Context, s Scope, now time.Time) (Totals, error) {
	v := e.view(s.Key)
	sums := Totals{LastUpdated: v.freshness.Updated, CompleteUntil: v.freshness.Complete}
	// The last day first: a batch may be committed in between, and then the whole
	// must not be less than this part of it.
	var err error
	if sums.Clicks24h, err = v.lastDay(ctx, now); err != nil {
		return Totals{}, fmt.Errorf("clicks of the last 24 hours: %w", err)
	}
	life, err := v.read(ctx, 0, nil, none)
	if err != nil {
		return Totals{}, fmt.Errorf("totals: %w", err)
	}
	if life.LastClicked != 0 {
		sums.LastClicked = time.UnixMilli(life.LastClicked).UTC()
	}
	if life.FirstSeen == 0 {
		return sums, nil // never seen: every range is zero
	}
	if s.From.IsZero() && s.To.IsZero() {
		sums.Counts = life.Counts // also what clocks have put after now
		if sums.VisitorDays, err = v.visitorDays(ctx, time.UnixMilli(life.FirstSeen), now); err != nil {
			return Totals{}, fmt.Errorf("totals: %w", err)
		}
		return sums, nil
	}
	r, err := s.resolve(quarter, time.UnixMilli(life.FirstSeen), now)
	if err != nil {
		return Totals{}, err
	}
	perDay := map[uint32]*rollup.Visitors{}
	_, err = v.read(ctx, rollup.WantVisitors, buckets(r), func(row rollup.BucketDelta) {
		sums.Add(row.Rollup.Counts)
		d := rollup.BucketAt(rollup.Day, row.Bucket.Start()).Ordinal
		if perDay[d] == nil {
			perDay[d] = new(rollup.Visitors)
		}
		perDay[d].Merge(row.Rollup.Visitors)
	})
	if err != nil {
		return Totals{}, fmt.Errorf("totals: %w", err)
	}
	for _, visitors := range perDay {
		sums.VisitorDays += visitors.Count()
	}
	return sums, nil
}

// lastDay returns the clicks since the minute 24 hours ago.
func (v *view) lastDay(ctx context.Context, now time.Time) (n uint64, err error) {
	since := now.UTC().Add(-day).Truncate(time.Minute)
	last := rollup.BucketAt(rollup.Quarter, now)
	spans := []rollup.Span{{Granularity: rollup.Quarter, First: rollup.BucketAt(rollup.Quarter, since).Ordinal, Last: last.Ordinal}}
	_, err = v.read(ctx, 0, spans, func(row rollup.BucketDelta) {
		start := row.Bucket.Start()
		if !start.Before(since) {
			n += row.Rollup.Clicks
			return
		}
		for _, m := range row.Rollup.Minutes {
			if !start.Add(time.Duration(m.Index) * time.Minute).Before(since) {
				n += m.Clicks
			}
		}
	})
	return n, err
}

// firstSeen returns when the link was first asked for; zero = never. It is read
// only where the scope leaves its beginning open.
func (v *view) firstSeen(ctx context.Context, s Scope) (time.Time, error) {
	if !s.From.IsZero() {
		return time.Time{}, nil
	}
	life, err := v.read(ctx, 0, nil, none)
	if err != nil || life.FirstSeen == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(life.FirstSeen), nil
}

// Series implements Reader.
func (e *Embedded) Series(ctx context.Context, s Scope, step Step, now time.Time) ([]Point, error) {
	v := e.view(s.Key)
	first, err := v.firstSeen(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("series: %w", err)
	}
	p, err := s.Plan(step, first, now)
	if err != nil {
		return nil, err
	}
	r, sums := p.span(), newSeries(p, v.freshness.Complete)
	if step == Minute {
		wide := span{r.from.Truncate(quarter), r.to.Add(quarter - time.Minute).Truncate(quarter)}
		_, err = v.read(ctx, 0, quarters(nil, wide), sums.addMinutes)
	} else {
		err = sums.count(ctx, &v, r)
	}
	if err != nil {
		return nil, fmt.Errorf("series: %w", err)
	}
	return sums.points, nil
}

// series sums rows up by step.
type series struct {
	starts   []time.Time // and the end of the last
	points   []Point
	visitors []rollup.Visitors
	last     int // step that was asked for last: rows come by time, mostly
}

func newSeries(p Plan, complete time.Time) *series {
	points := p.Points(complete)
	return &series{starts: p.Starts, points: points, visitors: make([]rollup.Visitors, len(points))}
}

// at returns the step that holds t, or -1.
func (s *series) at(t time.Time) int {
	if i := s.last; i < len(s.points) && !t.Before(s.starts[i]) && t.Before(s.starts[i+1]) {
		return i
	}
	i := sort.Search(len(s.starts), func(i int) bool { return s.starts[i].After(t) }) - 1
	if i < 0 || i >= len(s.points) {
		return -1
	}
	s.last = i
	return i
}

func (s *series) addMinutes(row rollup.BucketDelta) {
	for _, m := range row.Rollup.Minutes {
		if i := s.at(row.Bucket.Start().Add(time.Duration(m.Index) * time.Minute)); i >= 0 {
			s.points[i].Clicks += m.Clicks
			s.points[i].Humans += m.Humans
		}
	}
}

// Top implements Reader.
func (e *Embedded) Top(ctx context.Context, s Scope, n int, now time.Time, dimensions ...clicks.Dimension) ([][]Row, error) {
	v := e.view(s.Key)
	first, err := v.firstSeen(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("top: %w", err)
	}
	r, err := s.resolve(quarter, first, now)
	if err != nil {
		return nil, err
	}
	sums := rollup.NewSums(dimensions...)
	if err := v.sum(ctx, sums, buckets(r)); err != nil {
		return nil, fmt.Errorf("top: %w", err)
	}
	top := make([][]Row, len(dimensions))
	for i, d := range dimensions {
		top[i] = mostClicked(sums.Values(d), n)
	}
	return top, nil
}

func mostClicked(sums []rollup.Value, n int) []Row {
	rows := make([]Row, 0, len(sums))
	for _, v := range sums {
		rows = append(rows, Row(v))
	}
	slices.SortFunc(rows, func(a, b Row) int {
		if a.Clicks != b.Clicks {
			if a.Clicks > b.Clicks {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Value, b.Value)
	})
	return rows[:min(n, len(rows))]
}

// Clicks implements Reader.
func (e *Embedded) Clicks(ctx context.Context, keys []link.Key) ([]uint64, error) {
	type part struct {
		i          int
		generation uint64
		clicks     uint64
	}
	var pending []part
	e.fold.PendingTotals(keys, func(i int, generation uint64, t rollup.Total) {
		pending = append(pending, part{i, generation, t.Clicks})
	})
	stored, generation, err := e.store.Totals(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("clicks of links: %w", unavailable(ctx, err))
	}
	sums := make([]uint64, len(keys))
	for i := range stored {
		sums[i] = stored[i].Clicks
	}
	for _, p := range pending {
		if p.generation > generation {
			sums[p.i] += p.clicks
		}
	}
	return sums, nil
}
