package counts

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/clicks/rollup"
)

// statements are the texts of the statements that take many rows, by the binary
// logarithm of how many.
type statements struct{ totals, read, put []string }

const (
	// One statement adds many links: parsing, binding and stepping once per link
	// would cost more than the rows.
	sqlAddTotals = `INSERT INTO links (domain, code, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked)
		VALUES `
	sqlAddTotalsEnd = ` ON CONFLICT (domain, code) DO UPDATE SET
		clicks = clicks + excluded.clicks, humans = humans + excluded.humans,
		previews = previews + excluded.previews, fallbacks = fallbacks + excluded.fallbacks,
		refused = refused + excluded.refused,
		first_seen = min(first_seen, excluded.first_seen), last_clicked = max(last_clicked, excluded.last_clicked)
		RETURNING n, domain, code`
	sqlPackedRows = `SELECT id, clicks, humans, previews, fallbacks, refused, minutes, dimensions, visitors
		FROM rollups WHERE id IN `
	sqlPutRows = `INSERT OR REPLACE INTO rollups
		(id, clicks, humans, previews, fallbacks, refused, minutes, dimensions, visitors) VALUES `
	totalColumns = 9
	rowColumns   = 9
)

func newStatements() (s statements) {
	for n := 1; n <= sqlitedb.RowsAtOnce; n *= 2 {
		s.totals = append(s.totals, sqlAddTotals+sqlitedb.Groups(n, totalColumns)+sqlAddTotalsEnd)
		s.read = append(s.read, sqlPackedRows+sqlitedb.Groups(1, n))
		s.put = append(s.put, sqlPutRows+sqlitedb.Groups(n, rowColumns))
	}
	return s
}

// batchBuffers are what Apply works with; they are kept from batch to batch.
type batchBuffers struct {
	statements statements
	yield      func() // between statements; kept
	most       int    // rows that one of them takes; kept
	args       []any
	numbers    []int64 // links.n per delta of the chunk
	deltas     []rollup.RowDelta
	rows       []rollupRow     // of the chunk, by number
	quarters   []rollup.Minute // of the chunk's days
	packed     []byte          // new packed columns of the chunk
}

// rollupRow is one row of the chunk under way.
type rollupRow struct {
	rollup.RowDelta

	sum    rollup.PackedRow // of the stored row, if there is one, and the delta
	packed bool             // sum is set
}

// Apply implements rollup.Store.
func (s *Rollups) Apply(ctx context.Context, b rollup.Batch) error {
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
	err := s.write.Do(func(t *sqlitedb.Tx) error {
		if _, err := t.Exec(sqlitedb.SQLBegin); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		err := s.applyIn(ctx, t, b)
		if err == nil {
			done := s.config.Yielder.Boost()
			_, err = t.Exec(sqlitedb.SQLCommit)
			if done(); err == nil {
				return nil
			}
			err = fmt.Errorf("commit: %w", err)
		}
		_, _ = t.Exec(sqlitedb.SQLRollback) // SQLite may have ended the transaction itself
		if errors.Is(err, errApplied) {
			return nil
		}
		return err
	})
	s.batch.drop()
	if err != nil {
		return fmt.Errorf("apply to clicks.db: %w", s.disk.Explain(s.config.Path, err))
	}
	select {
	case s.applied <- struct{}{}:
	default:
	}
	return nil
}

// errApplied ends a transaction that has nothing to do.
var errApplied = errors.New("the batch was applied before")

const sqlSetState = `UPDATE state SET generation = ?, segment = ?, place = ? WHERE one = 1`

func (s *Rollups) applyIn(ctx context.Context, t *sqlitedb.Tx, b rollup.Batch) error {
	state, err := loadState(t)
	switch {
	case err != nil:
		return err
	case state == b.State:
		return errApplied
	case state.Generation+1 != b.Generation:
		return fmt.Errorf("batch %d after %d: %w", b.Generation, state.Generation, rollup.ErrGeneration)
	}
	for chunk := range b.Links {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.batch.apply(t, chunk); err != nil {
			return err
		}
	}
	_, err = t.Exec(sqlSetState, int64(b.Generation), int64(b.Position.Segment), b.Position.Offset)
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
func (b *batchBuffers) apply(t *sqlitedb.Tx, chunk []rollup.LinkDelta) error {
	b.numbers, b.rows, b.packed, b.quarters = b.numbers[:0], b.rows[:0], b.packed[:0], b.quarters[:0]
	for n := range sqlitedb.Portions(len(chunk), b.most) {
		b.yield()
		if err := b.addTotals(t, chunk[len(b.numbers):][:n]); err != nil {
			return err
		}
	}
	b.deltas = b.deltas[:0]
	for i := range chunk {
		b.deltas, b.quarters = rollup.RowDeltas(b.deltas, b.quarters, b.numbers[i], chunk[i].Buckets)
	}
	for _, d := range b.deltas {
		b.rows = append(b.rows, rollupRow{RowDelta: d})
	}
	slices.SortFunc(b.rows, func(x, y rollupRow) int { return compareNumber(x, y.Number) })
	at := 0
	for n := range sqlitedb.Portions(len(b.rows), b.most) {
		b.yield()
		if err := b.readRows(t, b.rows[at:][:n]); err != nil {
			return err
		}
		b.yield()
		if err := b.putRows(t, b.rows[at:][:n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

func statementFor(texts []string, n int) string { return texts[bits.Len(uint(n))-1] }

// addTotals adds the totals of up to rowsAtOnce links and appends their numbers in
// the order of the links, whatever order SQLite returns them in.
func (b *batchBuffers) addTotals(t *sqlitedb.Tx, links []rollup.LinkDelta) error {
	b.args = b.args[:0]
	for i := range links {
		k, c := &links[i].Key, &links[i].Total
		b.args = append(b.args, string(k.Domain), string(k.Code), int64(c.Clicks), int64(c.Humans), int64(c.Previews),
			int64(c.Fallbacks), int64(c.Refused), c.FirstSeen, c.LastClicked)
	}
	begin := len(b.numbers)
	b.numbers = append(b.numbers, make([]int64, len(links))...)
	numbers, next := b.numbers[begin:], 0
	return t.Each(statementFor(b.statements.totals, len(links)), func(row []driver.Value) error {
		r := sqlitedb.Scanner{Row: row}
		n, domain, code := r.Int(), r.Text(), r.Text()
		for range links {
			i := next % len(links)
			next++
			if string(links[i].Key.Code) == code && string(links[i].Key.Domain) == domain {
				numbers[i] = n
				return r.Damage()
			}
		}
		return fmt.Errorf("%w: RETURNING has a link that was not written", sqlitedb.ErrCorrupt)
	}, b.args...)
}

// readRows merges what is stored into the rows, which are sorted by number.
func (b *batchBuffers) readRows(t *sqlitedb.Tx, rows []rollupRow) error {
	b.args = b.args[:0]
	for i := range rows {
		b.args = append(b.args, rows[i].Number)
	}
	return t.Each(statementFor(b.statements.read, len(rows)), func(values []driver.Value) error {
		number, stored, err := scanPacked(values)
		if err != nil {
			return err
		}
		i, found := slices.BinarySearchFunc(rows, number, compareNumber)
		if !found {
			return fmt.Errorf("%w: unexpected roll-up %d", sqlitedb.ErrCorrupt, number)
		}
		return b.pack(&rows[i], stored)
	}, b.args...)
}

func compareNumber(r rollupRow, number int64) int { return cmp.Compare(r.Number, number) }

// pack makes what is stored of r from now on.
func (b *batchBuffers) pack(r *rollupRow, stored rollup.PackedRow) (err error) {
	b.yield() // a busy link's columns alone may be 100 µs
	r.sum, b.packed, err = r.Salvage(b.packed, stored)
	r.packed = true
	return err
}

// putRows writes the rows, first packing those that were not stored yet.
func (b *batchBuffers) putRows(t *sqlitedb.Tx, rows []rollupRow) error {
	b.args = b.args[:0]
	for i := range rows {
		r := &rows[i]
		if !r.packed {
			if err := b.pack(r, rollup.PackedRow{}); err != nil {
				return err
			}
		}
		c := &r.sum
		b.args = append(b.args, r.Number, int64(c.Clicks), int64(c.Humans), int64(c.Previews), int64(c.Fallbacks), int64(c.Refused),
			c.Minutes, c.Dimensions, c.Visitors)
	}
	_, err := t.Exec(statementFor(b.statements.put, len(rows)), b.args...)
	return err
}
