package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"

	"curt/internal/clicks"
	"curt/internal/link"
)

// Totals implements clicks.RollupStore.
func (s *Rollups) Totals(ctx context.Context, keys []link.Key) (totals []clicks.Total, generation uint64, err error) {
	totals = make([]clicks.Total, len(keys))
	err = s.view(ctx, func(t *tx) error {
		state, err := loadState(t)
		if err != nil {
			return err
		}
		generation = state.Generation
		left := totals
		for n := range portions(len(keys), s.rows) {
			s.config.Rest()
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

// readTotals reads the totals of up to rowsAtOnce links in one statement: a statement
// for each costs more than its row.
func readTotals(t *tx, keys []link.Key, totals []clicks.Total) error {
	args := make([]any, 0, 2*len(keys))
	for i := range keys {
		args = append(args, string(keys[i].Domain), string(keys[i].Code))
	}
	return t.each(sqlTotals+groups(len(keys), 2)+sqlTotalsEnd, func(row []driver.Value) error {
		r := scanner{row: row}
		k := link.Key{Domain: link.Domain(r.text()), Code: link.Code(r.text())}
		total := clicks.Total{Counts: r.counts()}
		total.FirstSeen, total.LastClicked = r.int(), r.int()
		for i := range keys {
			if keys[i] == k { // may be asked for twice
				totals[i] = total
			}
		}
		return r.damage()
	}, args...)
}

// readTotal returns a link's number and total; zeros for a link without clicks.
func readTotal(t *tx, k link.Key) (n int64, total clicks.Total, err error) {
	_, err = t.one(sqlTotal, func(row []driver.Value) error {
		r := scanner{row: row}
		n, total.Counts = r.int(), r.counts()
		total.FirstSeen, total.LastClicked = r.int(), r.int()
		return r.damage()
	}, string(k.Domain), string(k.Code))
	return n, total, err
}

func (s *scanner) counts() clicks.Counts {
	return clicks.Counts{
		Clicks: uint64(s.int()), Humans: uint64(s.int()), Previews: uint64(s.int()),
		Fallbacks: uint64(s.int()), Refused: uint64(s.int()),
	}
}

// blob reads a column that may be NULL. The bytes are the driver's, valid during
// the call that the row came in.
func (s *scanner) blob() []byte {
	if len(s.row) > 0 && s.row[0] == nil {
		s.row = s.row[1:]
		return nil
	}
	return next[[]byte](s)
}

// Read implements clicks.RollupStore.
func (s *Rollups) Read(ctx context.Context, k link.Key, want clicks.Want, spans ...clicks.Span) (found clicks.Stored, err error) {
	columns := sqlRowColumns
	if want&clicks.WantVisitors != 0 {
		columns = sqlVisitorColumns
	}
	found.Generation, found.Total, err = s.walk(ctx, k, spans, columns, func(values []driver.Value) error {
		_, b, err := scanRollup(values)
		found.Rows = append(found.Rows, b)
		return err
	})
	if err != nil {
		return clicks.Stored{}, fmt.Errorf("read roll-ups of %s: %w", k, err)
	}
	return found, nil
}

// Sum implements clicks.RollupStore.
func (s *Rollups) Sum(ctx context.Context, k link.Key, into *clicks.Sums, spans ...clicks.Span) (generation uint64, err error) {
	generation, _, err = s.walk(ctx, k, spans, sqlSumColumns, func(values []driver.Value) error {
		r := scanner{row: values}
		id, packed := r.int(), r.blob()
		if err := r.damage(); err != nil {
			return err
		}
		if err := into.AddPacked(packed); err != nil {
			return fmt.Errorf("dimensions of roll-up %d: %w", id, err)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("add up dimensions of %s: %w", k, err)
	}
	return generation, nil
}

// walk calls f, in one view, with each row of the link in the spans, by bucket within
// each span.
func (s *Rollups) walk(ctx context.Context, k link.Key, spans []clicks.Span, columns string, f func([]driver.Value) error) (generation uint64, total clicks.Total, err error) {
	err = s.view(ctx, func(t *tx) error {
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
				if err := t.each(query, f, args...); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return generation, total, err
}

// spanQueries yields what reads the rows of a link's span. The days of a link lie far
// apart and are named one by one, many in one statement: a statement for each costs more
// than its row.
func spanQueries(columns string, link int64, s clicks.Span) iter.Seq2[string, []any] {
	return func(yield func(string, []any) bool) {
		ranges := clicks.RowRanges(nil, link, s)
		if s.Granularity == clicks.Quarter {
			for _, r := range ranges {
				if !yield("SELECT "+columns+sqlBetween, []any{r.First, r.Last}) {
					return
				}
			}
			return
		}
		for n := range portions(len(ranges), rowsAtOnce) {
			ids := make([]any, n)
			for i := range ids {
				ids[i] = ranges[i].First
			}
			if !yield("SELECT "+columns+sqlAmong+groups(1, n)+sqlInOrder, ids) {
				return
			}
			ranges = ranges[n:]
		}
	}
}

// scanRollup reads the nine columns of a roll-up and unpacks them.
func scanRollup(values []driver.Value) (id int64, b clicks.BucketDelta, err error) {
	id, row, err := scanPacked(values)
	if err != nil {
		return 0, b, err
	}
	b, err = row.Unpack(id)
	return id, b, err
}

// scanPacked reads the nine columns of a roll-up.
func scanPacked(values []driver.Value) (id int64, r clicks.PackedRow, err error) {
	s := scanner{row: values}
	id, r.Counts = s.int(), s.counts()
	r.Minutes, r.Dimensions, r.Visitors = s.blob(), s.blob(), s.blob()
	return id, r, s.damage()
}
