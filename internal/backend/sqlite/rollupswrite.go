package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"curt/internal/clicks"
)

// batchBuffers are what Apply works with; they are kept from batch to batch.
type batchBuffers struct {
	statements statements
	args       []any
	numbers    []int64         // links.n per delta of the chunk
	rows       []rollupRow     // of the chunk, by id
	quarters   []clicks.Minute // of the chunk's days
	packed     []byte          // new packed columns of the chunk
}

// rollupRow is one row of the chunk under way.
type rollupRow struct {
	id                            int64
	delta                         *clicks.Rollup
	day                           bool
	quarters                      []clicks.Minute // of a day's delta
	counts                        clicks.Counts
	minutes, dimensions, visitors []byte
	merged                        bool // the stored row was there and is included
}

// Apply implements clicks.RollupStore.
func (s *Rollups) Apply(ctx context.Context, b clicks.Batch) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	select {
	case <-s.closed:
		return errClosed
	default:
	}
	if s.batch.statements.put == nil {
		s.batch.statements = newStatements()
	}
	err := s.write.do(func(t *tx) error {
		if _, err := t.exec(sqlBegin); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		err := s.applyIn(ctx, t, b)
		if err == nil {
			if _, err = t.exec(sqlCommit); err == nil {
				return nil
			}
			err = fmt.Errorf("commit: %w", err)
		}
		_, _ = t.exec(sqlRollback) // SQLite may have ended the transaction itself
		if errors.Is(err, errApplied) {
			return nil
		}
		return err
	})
	s.batch.drop()
	if err != nil {
		return fmt.Errorf("apply to clicks.db: %w", err)
	}
	select {
	case s.applied <- struct{}{}:
	default:
	}
	return nil
}

// errApplied ends a transaction that has nothing to do.
var errApplied = errors.New("the batch was applied before")

func (s *Rollups) applyIn(ctx context.Context, t *tx, b clicks.Batch) error {
	state, err := loadState(t)
	switch {
	case err != nil:
		return err
	case state == b.State:
		return errApplied
	case state.Generation+1 != b.Generation:
		return fmt.Errorf("batch %d after %d: %w", b.Generation, state.Generation, clicks.ErrGeneration)
	}
	for chunk := range b.Links {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.batch.apply(t, chunk); err != nil {
			return err
		}
	}
	_, err = t.exec(sqlSetState, int64(b.Generation), int64(b.Position.Segment), b.Position.Offset)
	return err
}

// drop lets go of what the batch pointed to.
func (b *batchBuffers) drop() {
	clear(b.args[:cap(b.args)])
	clear(b.rows[:cap(b.rows)])
	b.packed = b.packed[:0]
	if cap(b.packed) > 4<<20 {
		b.packed = nil // one batch of hot links must not hold memory for good
	}
}

// apply adds one chunk: the links' totals, which gives their numbers; then the rows
// that are there are read, merged and put back with the new ones.
func (b *batchBuffers) apply(t *tx, chunk []clicks.LinkDelta) error {
	b.numbers, b.rows, b.packed, b.quarters = b.numbers[:0], b.rows[:0], b.packed[:0], b.quarters[:0]
	for n := range portions(len(chunk)) {
		if err := b.addTotals(t, chunk[len(b.numbers):][:n]); err != nil {
			return err
		}
	}
	for i := range chunk {
		for _, d := range chunk[i].Buckets {
			row := rollupRow{id: rollupID(b.numbers[i], d.Bucket), delta: d.Rollup, counts: d.Rollup.Counts}
			if row.day = d.Bucket.Granularity == clicks.Day; row.day {
				row.quarters = b.quartersOf(chunk[i].Buckets, d.Bucket)
			}
			b.rows = append(b.rows, row)
		}
	}
	slices.SortFunc(b.rows, func(x, y rollupRow) int { return compareID(x, y.id) })
	at := 0
	for n := range portions(len(b.rows)) {
		if err := b.readRows(t, b.rows[at:][:n]); err != nil {
			return err
		}
		if err := b.putRows(t, b.rows[at:][:n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// quartersOf returns the clicks of a day's quarters, by index.
func (b *batchBuffers) quartersOf(buckets []clicks.BucketDelta, day clicks.Bucket) []clicks.Minute {
	begin := len(b.quarters)
	for _, q := range buckets {
		if q.Bucket.Granularity == clicks.Quarter && q.Bucket.Ordinal/quartersPerDay == day.Ordinal && q.Rollup.Clicks > 0 {
			b.quarters = append(b.quarters, clicks.Minute{
				Index: uint8(q.Bucket.Ordinal % quartersPerDay), Clicks: q.Rollup.Clicks, Humans: q.Rollup.Humans,
			})
		}
	}
	quarters := b.quarters[begin:len(b.quarters):len(b.quarters)]
	slices.SortFunc(quarters, func(x, y clicks.Minute) int { return int(x.Index) - int(y.Index) })
	return quarters
}

// portions yields the sizes of the statements that take n rows: powers of two, so
// that few statements have to be prepared.
func portions(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for n > 0 {
			size := min(rowsAtOnce, 1<<(bits.Len(uint(n))-1))
			if !yield(size) {
				return
			}
			n -= size
		}
	}
}

func statementFor(texts []string, n int) string { return texts[bits.Len(uint(n))-1] }

// addTotals adds the totals of up to rowsAtOnce links and appends their numbers in
// the order of the links, whatever order SQLite returns them in.
func (b *batchBuffers) addTotals(t *tx, links []clicks.LinkDelta) error {
	b.args = b.args[:0]
	for i := range links {
		k, c := &links[i].Key, &links[i].Total
		b.args = append(b.args, string(k.Domain), string(k.Code), int64(c.Clicks), int64(c.Humans), int64(c.Previews),
			int64(c.Fallbacks), int64(c.Refused), c.FirstSeen, c.LastClicked)
	}
	begin := len(b.numbers)
	b.numbers = append(b.numbers, make([]int64, len(links))...)
	numbers, next := b.numbers[begin:], 0
	return t.each(statementFor(b.statements.totals, len(links)), func(row []driver.Value) error {
		r := scanner{row: row}
		n, domain, code := r.int(), r.text(), r.text()
		for range links {
			i := next % len(links)
			next++
			if string(links[i].Key.Code) == code && string(links[i].Key.Domain) == domain {
				numbers[i] = n
				return r.damage()
			}
		}
		return fmt.Errorf("%w: RETURNING names a link that was not written", ErrCorrupt)
	}, b.args...)
}

// readRows merges what is stored into the rows, which are sorted by id.
func (b *batchBuffers) readRows(t *tx, rows []rollupRow) error {
	b.args = b.args[:0]
	for i := range rows {
		b.args = append(b.args, rows[i].id)
	}
	return t.each(statementFor(b.statements.read, len(rows)), func(values []driver.Value) error {
		stored, err := scanPacked(values)
		if err != nil {
			return err
		}
		i, found := slices.BinarySearchFunc(rows, stored.id, compareID)
		if !found {
			return fmt.Errorf("%w: roll-up %d was not asked for", ErrCorrupt, stored.id)
		}
		rows[i].counts.Add(stored.counts)
		rows[i].merged = true
		return b.pack(&rows[i], &stored)
	}, b.args...)
}

func compareID(r rollupRow, id int64) int {
	switch {
	case r.id < id:
		return -1
	case r.id > id:
		return 1
	}
	return 0
}

// pack makes the packed columns of r from its delta and the stored row.
func (b *batchBuffers) pack(r, stored *rollupRow) (err error) {
	if !r.day {
		if r.minutes, err = b.packed1(clicks.MergeMinutes(b.packed, stored.minutes, r.delta.Minutes)); err != nil {
			return err
		}
	}
	if r.dimensions, err = b.packed1(clicks.MergeDimensions(b.packed, stored.dimensions, &r.delta.Dimensions)); err != nil {
		return err
	}
	r.visitors, err = b.packed1(clicks.MergeVisitors(b.packed, stored.visitors, &r.delta.Visitors))
	if err != nil || !r.day {
		return err
	}
	r.minutes, err = b.packed1(clicks.MergeDay(b.packed, stored.minutes, r.quarters, r.visitors))
	return err
}

// packed1 takes the buffer back after a merge appended a column to it, and returns
// that column; nil when it is empty.
func (b *batchBuffers) packed1(grown []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	begin := len(b.packed)
	b.packed = grown
	if len(grown) == begin {
		return nil, nil
	}
	return grown[begin:len(grown):len(grown)], nil
}

// putRows writes the rows, first packing those that were not stored yet.
func (b *batchBuffers) putRows(t *tx, rows []rollupRow) error {
	b.args = b.args[:0]
	for i := range rows {
		r := &rows[i]
		if !r.merged {
			if err := b.pack(r, &rollupRow{}); err != nil {
				return err
			}
		}
		c := &r.counts
		b.args = append(b.args, r.id, int64(c.Clicks), int64(c.Humans), int64(c.Previews), int64(c.Fallbacks), int64(c.Refused),
			r.minutes, r.dimensions, r.visitors)
	}
	_, err := t.exec(statementFor(b.statements.put, len(rows)), b.args...)
	return err
}
