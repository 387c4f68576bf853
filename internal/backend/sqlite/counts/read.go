package counts

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// Totals implements rollup.Store.
func (s *Rollups) Totals(ctx context.Context, keys []link.Key) (totals []rollup.Total, generation uint64, err error) {
	totals = make([]rollup.Total, len(keys))
	err = s.view(ctx, func(t *sqlitedb.Tx) error {
		state, err := loadState(t)
		if err != nil {
			return err
		}
		generation = state.Generation
		left := totals
		for n := range sqlitedb.Portions(len(keys), s.rows) {
			s.config.Yielder.Yield()
			if err := readTotals(t, keys[:n], left[:n]); err != nil {
				return err
			}
			keys, left = keys[n:], left[n:]
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read totals: %w", err)
	}
	return totals, generation, nil
}

const (
	// A row value among others (IN) would be a walk over the table.
	sqlTotals    = `WITH asked (d, c) AS (VALUES `
	sqlTotalsEnd = `) SELECT domain, code, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked
		FROM asked CROSS JOIN links ON domain = d AND code = c`
)

// readTotals reads the totals of up to rowsAtOnce links in one statement: a statement
// for each costs more than its row.
func readTotals(t *sqlitedb.Tx, keys []link.Key, totals []rollup.Total) error {
	args := make([]any, 0, 2*len(keys))
	for i := range keys {
		args = append(args, string(keys[i].Domain), string(keys[i].Code))
	}
	return t.Each(sqlTotals+sqlitedb.Groups(len(keys), 2)+sqlTotalsEnd, func(row []driver.Value) error {
		r := sqlitedb.Scanner{Row: row}
		k := link.Key{Domain: link.Domain(r.Text()), Code: link.Code(r.Text())}
		total := rollup.Total{Counts: counts(&r)}
		total.FirstSeen, total.LastClicked = r.Int(), r.Int()
		for i := range keys {
			if keys[i] == k { // may be asked for twice
				totals[i] = total
			}
		}
		return r.Damage()
	}, args...)
}

const sqlTotal = `SELECT n, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked
		FROM links WHERE domain = ? AND code = ?`

// readTotal returns a link's number and total; zeros for a link without clicks.
func readTotal(t *sqlitedb.Tx, k link.Key) (n int64, total rollup.Total, err error) {
	_, err = t.One(sqlTotal, func(row []driver.Value) error {
		r := sqlitedb.Scanner{Row: row}
		n, total.Counts = r.Int(), counts(&r)
		total.FirstSeen, total.LastClicked = r.Int(), r.Int()
		return r.Damage()
	}, string(k.Domain), string(k.Code))
	return n, total, err
}

// counts reads five columns.
func counts(s *sqlitedb.Scanner) rollup.Counts {
	return rollup.Counts{
		Clicks: uint64(s.Int()), Humans: uint64(s.Int()), Previews: uint64(s.Int()),
		Fallbacks: uint64(s.Int()), Refused: uint64(s.Int()),
	}
}

const (
	// What is read of rows: the costly columns only where wanted, because SQLite does
	// not touch the pages of a blob that is not asked for.
	sqlRowColumns     = `id, clicks, humans, previews, fallbacks, refused, minutes, NULL, NULL`
	sqlVisitorColumns = `id, clicks, humans, previews, fallbacks, refused, minutes, NULL, visitors`
)

// Read implements rollup.Store.
func (s *Rollups) Read(ctx context.Context, k link.Key, want rollup.Want, spans ...rollup.Span) (found rollup.Stored, err error) {
	columns := sqlRowColumns
	if want&rollup.WantVisitors != 0 {
		columns = sqlVisitorColumns
	}
	found.Generation, found.Total, err = s.walk(ctx, k, spans, columns, func(values []driver.Value) error {
		_, b, err := scanRollup(values)
		found.Rows = append(found.Rows, b)
		return err
	})
	if err != nil {
		return rollup.Stored{}, fmt.Errorf("read roll-ups of %s: %w", k, err)
	}
	return found, nil
}

const sqlSumColumns = `id, dimensions`

// Sum implements rollup.Store.
func (s *Rollups) Sum(ctx context.Context, k link.Key, into *rollup.Sums, spans ...rollup.Span) (generation uint64, err error) {
	generation, _, err = s.walk(ctx, k, spans, sqlSumColumns, func(values []driver.Value) error {
		r := sqlitedb.Scanner{Row: values}
		id, packed := r.Int(), r.Blob()
		if err := r.Damage(); err != nil {
			return err
		}
		if err := into.AddPacked(packed); err != nil {
			return fmt.Errorf("dimensions of roll-up %d: %w", id, err)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("sum dimensions of %s: %w", k, err)
	}
	return generation, nil
}

// walk calls f, in one view, with each row of the link in the spans, by bucket within
// each span.
func (s *Rollups) walk(ctx context.Context, k link.Key, spans []rollup.Span, columns string, f func([]driver.Value) error) (generation uint64, total rollup.Total, err error) {
	err = s.view(ctx, func(t *sqlitedb.Tx) error {
		state, err := loadState(t)
		if err != nil {
			return err
		}
		generation = state.Generation
		n, found, err := readTotal(t, k)
		if err != nil || n == 0 {
			return err
		}
		total = found
		for _, span := range spans {
			for query, args := range spanQueries(columns, n, span) {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := t.Each(query, f, args...); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return generation, total, err
}

const (
	sqlBetween = ` FROM rollups WHERE id BETWEEN ? AND ?`
	sqlAmong   = ` FROM rollups WHERE id IN `
	sqlInOrder = ` ORDER BY id`
)

// spanQueries yields what reads the rows of a link's span. The days of a link lie far
// apart and are named one by one, many in one statement: a statement for each costs more
// than its row.
func spanQueries(columns string, link int64, s rollup.Span) iter.Seq2[string, []any] {
	return func(yield func(string, []any) bool) {
		ranges := rollup.RowRanges(nil, link, s)
		if s.Granularity == rollup.Quarter {
			for _, r := range ranges {
				if !yield("SELECT "+columns+sqlBetween, []any{r.First, r.Last}) {
					return
				}
			}
			return
		}
		for n := range sqlitedb.Portions(len(ranges), sqlitedb.RowsAtOnce) {
			ids := make([]any, n)
			for i := range ids {
				ids[i] = ranges[i].First
			}
			if !yield("SELECT "+columns+sqlAmong+sqlitedb.Groups(1, n)+sqlInOrder, ids) {
				return
			}
			ranges = ranges[n:]
		}
	}
}

// scanRollup reads the nine columns of a roll-up and unpacks them.
func scanRollup(values []driver.Value) (id int64, b rollup.BucketDelta, err error) {
	id, row, err := scanPacked(values)
	if err != nil {
		return 0, b, err
	}
	b, err = row.Unpack(id)
	return id, b, err
}

// scanPacked reads the nine columns of a roll-up.
func scanPacked(values []driver.Value) (id int64, r rollup.PackedRow, err error) {
	s := sqlitedb.Scanner{Row: values}
	id, r.Counts = s.Int(), counts(&s)
	r.Minutes, r.Dimensions, r.Visitors = s.Blob(), s.Blob(), s.Blob()
	return id, r, s.Damage()
}

// Counted implements search.Counts.
func (s *Rollups) Counted(ctx context.Context) (uint64, error) {
	state, err := s.Load(ctx)
	return state.Generation, err
}

// Count implements search.Counts.
func (s *Rollups) Count(ctx context.Context, keys []link.Key) ([]uint64, error) {
	totals, _, err := s.Totals(ctx, keys)
	clicks := make([]uint64, len(totals))
	for i := range totals {
		clicks[i] = totals[i].Clicks
	}
	return clicks, err
}

const sqlClicked = `SELECT n, domain, code FROM links WHERE n > ? ORDER BY n LIMIT ?`

// Clicked implements search.Counts.
func (s *Rollups) Clicked(ctx context.Context, after int64, n int) (keys []link.Key, last int64, err error) {
	err = s.view(ctx, func(t *sqlitedb.Tx) error {
		return t.Each(sqlClicked, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			last = sc.Int()
			keys = append(keys, link.Key{Domain: link.Domain(sc.Text()), Code: link.Code(sc.Text())})
			return sc.Damage()
		}, after, int64(n))
	})
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("walk clicked links: %w", err)
	case len(keys) < n:
		return keys, 0, nil
	}
	return keys, last, nil
}
