package rolluptest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// Memory is a rollup.Store in memory. It merges packed forms as stores on
// disk do. The zero Memory is empty and usable.
type Memory struct {
	mu    sync.Mutex
	state rollup.State
	links map[link.Key]*memoryLink
	fault func(rollup.Batch) (apply bool, err error)
}

type memoryLink struct {
	total rollup.Total
	rows  map[rollup.Bucket]memoryRow
}

type memoryRow struct {
	counts                        rollup.Counts
	minutes, dimensions, visitors []byte
}

// SetFault makes Apply fail: with apply the batch is applied and the error is
// returned all the same, as when an acknowledgement is lost. nil ends it.
func (m *Memory) SetFault(f func(rollup.Batch) (apply bool, err error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

// Load implements rollup.Store.
func (m *Memory) Load(ctx context.Context) (rollup.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, ctx.Err()
}

// Apply implements rollup.Store.
func (m *Memory) Apply(ctx context.Context, b rollup.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	apply, fault := true, error(nil)
	if m.fault != nil {
		apply, fault = m.fault(b)
	}
	if !apply {
		return fault
	}
	if b.State == m.state {
		return fault
	}
	if b.Generation != m.state.Generation+1 {
		return fmt.Errorf("batch %d after %d: %w", b.Generation, m.state.Generation, rollup.ErrGeneration)
	}
	next := make(map[link.Key]*memoryLink)
	for chunk := range b.Links {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range chunk {
			l, err := m.links[chunk[i].Key].with(&chunk[i])
			if err != nil {
				return err
			}
			next[chunk[i].Key] = l
		}
	}
	if m.links == nil {
		m.links = make(map[link.Key]*memoryLink)
	}
	maps.Copy(m.links, next)
	m.state = b.State
	return fault
}

// with returns a copy of l, which may be nil, with the delta added.
func (l *memoryLink) with(d *rollup.LinkDelta) (*memoryLink, error) {
	sum := &memoryLink{rows: make(map[rollup.Bucket]memoryRow)}
	if l != nil {
		sum.total = l.total
		maps.Copy(sum.rows, l.rows)
	}
	sum.total.Add(d.Total)
	for _, b := range d.Buckets {
		row, err := sum.rows[b.Bucket].with(b)
		if err != nil {
			return nil, err
		}
		sum.rows[b.Bucket] = row
	}
	return sum, nil
}

func (r memoryRow) with(d rollup.BucketDelta) (memoryRow, error) {
	var err error
	r.counts.Add(d.Rollup.Counts)
	if d.Bucket.Granularity == rollup.Quarter {
		if r.minutes, err = rollup.MergeMinutes(nil, r.minutes, d.Rollup.Minutes); err != nil {
			return r, err
		}
	}
	if r.dimensions, err = rollup.MergeDimensions(nil, r.dimensions, &d.Rollup.Dimensions); err != nil {
		return r, err
	}
	r.visitors, err = rollup.MergeVisitors(nil, r.visitors, &d.Rollup.Visitors)
	return r, err
}

// Totals implements rollup.Store.
func (m *Memory) Totals(ctx context.Context, keys []link.Key) ([]rollup.Total, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	totals := make([]rollup.Total, len(keys))
	for i, k := range keys {
		if l := m.links[k]; l != nil {
			totals[i] = l.total
		}
	}
	return totals, m.state.Generation, ctx.Err()
}

// Read implements rollup.Store.
func (m *Memory) Read(ctx context.Context, k link.Key, _ rollup.Want, spans ...rollup.Span) (rollup.Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := rollup.Stored{Generation: m.state.Generation}
	l := m.links[k]
	if l == nil || ctx.Err() != nil {
		return found, ctx.Err()
	}
	found.Total = l.total
	for _, s := range spans {
		begin := len(found.Rows)
		for b, row := range l.within(s) {
			r, err := row.rollup()
			if err != nil {
				return found, err
			}
			found.Rows = append(found.Rows, rollup.BucketDelta{Bucket: b, Rollup: r})
		}
		slices.SortFunc(found.Rows[begin:], func(a, b rollup.BucketDelta) int {
			return cmp.Compare(a.Bucket.Ordinal, b.Bucket.Ordinal)
		})
	}
	return found, nil
}

// Sum implements rollup.Store.
func (m *Memory) Sum(ctx context.Context, k link.Key, into *rollup.Sums, spans ...rollup.Span) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links[k]
	if l == nil || ctx.Err() != nil {
		return m.state.Generation, ctx.Err()
	}
	for _, s := range spans {
		for _, row := range l.within(s) {
			dimensions, err := rollup.DecodeDimensions(row.dimensions)
			if err != nil {
				return 0, err
			}
			into.Add(&rollup.Rollup{Dimensions: dimensions})
		}
	}
	return m.state.Generation, nil
}

// within yields the rows of a span, in no order.
func (l *memoryLink) within(s rollup.Span) iter.Seq2[rollup.Bucket, memoryRow] {
	return func(yield func(rollup.Bucket, memoryRow) bool) {
		for b, row := range l.rows {
			if b.Granularity == s.Granularity && s.First <= b.Ordinal && b.Ordinal <= s.Last && !yield(b, row) {
				return
			}
		}
	}
}

func (r memoryRow) rollup() (*rollup.Rollup, error) {
	sum := &rollup.Rollup{Counts: r.counts}
	var err error
	if sum.Minutes, err = rollup.DecodeMinutes(r.minutes); err != nil {
		return nil, err
	}
	sum.Visitors, err = rollup.DecodeVisitors(r.visitors)
	return sum, err
}
