// Package clickstest proves stores of roll-ups: the suite that every
// clicks.RollupStore passes, and a store in memory that is its model.
package clickstest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"curt/internal/clicks"
	"curt/internal/link"
)

// Memory is a clicks.RollupStore in memory. It merges packed forms as stores on
// disk do. The zero Memory is empty and usable.
type Memory struct {
	mu    sync.Mutex
	state clicks.State
	links map[link.Key]*memoryLink
	fault func(clicks.Batch) (apply bool, err error)
}

type memoryLink struct {
	total clicks.Total
	rows  map[clicks.Bucket]memoryRow
}

type memoryRow struct {
	counts                        clicks.Counts
	minutes, dimensions, visitors []byte
}

// SetFault makes Apply fail: with apply the batch is applied and the error is
// returned all the same, as when an acknowledgement is lost. nil ends it.
func (m *Memory) SetFault(f func(clicks.Batch) (apply bool, err error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

// Load implements clicks.RollupStore.
func (m *Memory) Load(ctx context.Context) (clicks.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, ctx.Err()
}

// Apply implements clicks.RollupStore.
func (m *Memory) Apply(ctx context.Context, b clicks.Batch) error {
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
		return fmt.Errorf("batch %d after %d: %w", b.Generation, m.state.Generation, clicks.ErrGeneration)
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
func (l *memoryLink) with(d *clicks.LinkDelta) (*memoryLink, error) {
	sum := &memoryLink{rows: make(map[clicks.Bucket]memoryRow)}
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

func (r memoryRow) with(d clicks.BucketDelta) (memoryRow, error) {
	var err error
	r.counts.Add(d.Rollup.Counts)
	if d.Bucket.Granularity == clicks.Quarter {
		if r.minutes, err = clicks.MergeMinutes(nil, r.minutes, d.Rollup.Minutes); err != nil {
			return r, err
		}
	}
	if r.dimensions, err = clicks.MergeDimensions(nil, r.dimensions, &d.Rollup.Dimensions); err != nil {
		return r, err
	}
	r.visitors, err = clicks.MergeVisitors(nil, r.visitors, &d.Rollup.Visitors)
	return r, err
}

// Totals implements clicks.RollupStore.
func (m *Memory) Totals(ctx context.Context, keys []link.Key) ([]clicks.Total, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	totals := make([]clicks.Total, len(keys))
	for i, k := range keys {
		if l := m.links[k]; l != nil {
			totals[i] = l.total
		}
	}
	return totals, m.state.Generation, ctx.Err()
}

// Read implements clicks.RollupStore.
func (m *Memory) Read(ctx context.Context, k link.Key, _ clicks.Want, spans ...clicks.Span) (clicks.Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := clicks.Stored{Generation: m.state.Generation}
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
			found.Rows = append(found.Rows, clicks.BucketDelta{Bucket: b, Rollup: r})
		}
		slices.SortFunc(found.Rows[begin:], func(a, b clicks.BucketDelta) int {
			return cmp.Compare(a.Bucket.Ordinal, b.Bucket.Ordinal)
		})
	}
	return found, nil
}

// Sum implements clicks.RollupStore.
func (m *Memory) Sum(ctx context.Context, k link.Key, into *clicks.Sums, spans ...clicks.Span) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links[k]
	if l == nil || ctx.Err() != nil {
		return m.state.Generation, ctx.Err()
	}
	for _, s := range spans {
		for _, row := range l.within(s) {
			dimensions, err := clicks.DecodeDimensions(row.dimensions)
			if err != nil {
				return 0, err
			}
			into.Add(&clicks.Rollup{Dimensions: dimensions})
		}
	}
	return m.state.Generation, nil
}

// within yields the rows of a span, in no order.
func (l *memoryLink) within(s clicks.Span) iter.Seq2[clicks.Bucket, memoryRow] {
	return func(yield func(clicks.Bucket, memoryRow) bool) {
		for b, row := range l.rows {
			if b.Granularity == s.Granularity && s.First <= b.Ordinal && b.Ordinal <= s.Last && !yield(b, row) {
				return
			}
		}
	}
}

func (r memoryRow) rollup() (*clicks.Rollup, error) {
	sum := &clicks.Rollup{Counts: r.counts}
	var err error
	if sum.Minutes, err = clicks.DecodeMinutes(r.minutes); err != nil {
		return nil, err
	}
	sum.Visitors, err = clicks.DecodeVisitors(r.visitors)
	return sum, err
}
