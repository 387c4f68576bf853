package sqlite

import (
	"cmp"
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
	rest       func() // between statements; kept
	most       int    // rows that one of them takes; kept
	args       []any
	numbers    []int64 // links.n per delta of the chunk
	deltas     []clicks.RowDelta
	rows       []rollupRow     // of the chunk, by number
	quarters   []clicks.Minute // of the chunk's days
	packed     []byte          // new packed columns of the chunk
}

// rollupRow is one row of the chunk under way.
type rollupRow struct {
	clicks.RowDelta

	sum    clicks.PackedRow // of the stored row, if there is one, and the delta
	packed bool             // sum is set
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
			done := s.config.Work()
			_, err = t.exec(sqlCommit)
			if done(); err == nil {
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
		return fmt.Errorf("apply to clicks.db: %w", s.disk.tell(s.config.Path, err))
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
	clear(b.deltas[:cap(b.deltas)])
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
	for n := range portions(len(chunk), b.most) {
		b.rest()
		if err := b.addTotals(t, chunk[len(b.numbers):][:n]); err != nil {
			return err
		}
	}
	b.deltas = b.deltas[:0]
	for i := range chunk {
		b.deltas, b.quarters = clicks.RowDeltas(b.deltas, b.quarters, b.numbers[i], chunk[i].Buckets)
	}
	for _, d := range b.deltas {
		b.rows = append(b.rows, rollupRow{RowDelta: d})
	}
	slices.SortFunc(b.rows, func(x, y rollupRow) int { return compareNumber(x, y.Number) })
	at := 0
	for n := range portions(len(b.rows), b.most) {
		b.rest()
		if err := b.readRows(t, b.rows[at:][:n]); err != nil {
			return err
		}
		b.rest()
		if err := b.putRows(t, b.rows[at:][:n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// portions yields the sizes of the statements that take n rows, each at the most so many: powers
// of two, so that few statements have to be prepared.
func portions(n, most int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for n > 0 {
			size := min(most, 1<<(bits.Len(uint(n))-1))
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

// readRows merges what is stored into the rows, which are sorted by number.
func (b *batchBuffers) readRows(t *tx, rows []rollupRow) error {
	b.args = b.args[:0]
	for i := range rows {
		b.args = append(b.args, rows[i].Number)
	}
	return t.each(statementFor(b.statements.read, len(rows)), func(values []driver.Value) error {
		number, stored, err := scanPacked(values)
		if err != nil {
			return err
		}
		i, found := slices.BinarySearchFunc(rows, number, compareNumber)
		if !found {
			return fmt.Errorf("%w: roll-up %d was not asked for", ErrCorrupt, number)
		}
		return b.pack(&rows[i], stored)
	}, b.args...)
}

func compareNumber(r rollupRow, number int64) int { return cmp.Compare(r.Number, number) }

// pack makes what is stored of r from now on.
func (b *batchBuffers) pack(r *rollupRow, stored clicks.PackedRow) (err error) {
	b.rest() // a busy link's columns alone may be 100 µs
	r.sum, b.packed, err = r.Salvage(b.packed, stored)
	r.packed = true
	return err
}

// putRows writes the rows, first packing those that were not stored yet.
func (b *batchBuffers) putRows(t *tx, rows []rollupRow) error {
	b.args = b.args[:0]
	for i := range rows {
		r := &rows[i]
		if !r.packed {
			if err := b.pack(r, clicks.PackedRow{}); err != nil {
				return err
			}
		}
		c := &r.sum
		b.args = append(b.args, r.Number, int64(c.Clicks), int64(c.Humans), int64(c.Previews), int64(c.Fallbacks), int64(c.Refused),
			c.Minutes, c.Dimensions, c.Visitors)
	}
	_, err := t.exec(statementFor(b.statements.put, len(rows)), b.args...)
	return err
}
