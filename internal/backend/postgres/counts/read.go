package counts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// scanRollup reads rollupColumns.
func scanRollup(row pgx.Row) (id int64, r rollup.PackedRow, err error) {
	var all [5]int64
	err = row.Scan(&id, &all[0], &all[1], &all[2], &all[3], &all[4], &r.Minutes, &r.Dimensions, &r.Visitors)
	r.Counts = countsOf(all)
	return id, r, err
}

func countsOf(all [5]int64) rollup.Counts {
	return rollup.Counts{
		Clicks: uint64(all[0]), Humans: uint64(all[1]), Previews: uint64(all[2]), Fallbacks: uint64(all[3]), Refused: uint64(all[4]),
	}
}

// scanTotal reads whatever comes first and then totalColumns.
func scanTotal(row pgx.Row, first *int64) (t rollup.Total, err error) {
	var all [5]int64
	err = row.Scan(first, &all[0], &all[1], &all[2], &all[3], &all[4], &t.FirstSeen, &t.LastClicked)
	t.Counts = countsOf(all)
	return t, err
}

// Totals implements rollup.Store.
func (s *Rollups) Totals(ctx context.Context, keys []link.Key) (totals []rollup.Total, generation uint64, err error) {
	totals = make([]rollup.Total, len(keys))
	domains, codes := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		domains[i], codes[i] = string(k.Domain), string(k.Code)
	}
	err = s.view(ctx, func(ctx context.Context, t pgx.Tx) error {
		state, err := s.state(ctx, t)
		if err != nil {
			return err
		}
		generation = state.Generation
		return pgdb.Each(ctx, t, func(row pgx.Row) error {
			var turn int64
			total, err := scanTotal(row, &turn)
			if err == nil {
				totals[turn-1] = total
			}
			return err
		}, sqlClickTotals, domains, codes)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read totals: %w", err)
	}
	return totals, generation, nil
}

// Read implements rollup.Store.
func (s *Rollups) Read(ctx context.Context, k link.Key, want rollup.Want, spans ...rollup.Span) (found rollup.Stored, err error) {
	query := sqlRollupRows
	if want&rollup.WantVisitors != 0 {
		query = sqlRollupVisitors
	}
	found.Generation, found.Total, err = s.walk(ctx, k, spans, query, func(row pgx.Row) error {
		id, packed, err := scanRollup(row)
		if err != nil {
			return err
		}
		b, err := packed.Unpack(id)
		found.Rows = append(found.Rows, b)
		return err
	})
	if err != nil {
		return rollup.Stored{}, fmt.Errorf("read roll-ups of %s: %w", k, err)
	}
	return found, nil
}

// Sum implements rollup.Store.
func (s *Rollups) Sum(ctx context.Context, k link.Key, into *rollup.Sums, spans ...rollup.Span) (generation uint64, err error) {
	generation, _, err = s.walk(ctx, k, spans, sqlRollupSums, func(row pgx.Row) error {
		var id int64
		var packed []byte
		if err := row.Scan(&id, &packed); err != nil {
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

// walk calls scan, in one view, with each row of the link in the spans, by bucket within
// each span.
func (s *Rollups) walk(ctx context.Context, k link.Key, spans []rollup.Span, query string, scan func(pgx.Row) error) (generation uint64, total rollup.Total, err error) {
	err = s.view(ctx, func(ctx context.Context, t pgx.Tx) error {
		state, err := s.state(ctx, t)
		if err != nil {
			return err
		}
		generation = state.Generation
		var n int64
		found, err := pgdb.One(ctx, t, func(row pgx.Row) (err error) {
			total, err = scanTotal(row, &n)
			return err
		}, sqlClickTotal, string(k.Domain), string(k.Code))
		if err != nil || !found {
			total = rollup.Total{}
			return err
		}
		var ranges []rollup.RowRange
		for _, span := range spans {
			ranges = rollup.RowRanges(ranges, n, span)
		}
		if len(ranges) == 0 {
			return nil
		}
		first, last := make([]int64, len(ranges)), make([]int64, len(ranges))
		for i, r := range ranges {
			first[i], last[i] = r.First, r.Last
		}
		return pgdb.Each(ctx, t, scan, query, first, last)
	})
	return generation, total, err
}

// Counted implements search.Counts, for the batches of this writer.
func (s *Rollups) Counted(ctx context.Context) (uint64, error) {
	state, err := s.Load(ctx)
	return state.Generation, err
}

// Count implements search.Counts.
func (s *Rollups) Count(ctx context.Context, keys []link.Key) ([]uint64, error) {
	totals, _, err := s.Totals(ctx, keys)
	counts := make([]uint64, len(totals))
	for i := range totals {
		counts[i] = totals[i].Clicks
	}
	return counts, err
}

// Clicked implements search.Counts.
func (s *Rollups) Clicked(ctx context.Context, after int64, n int) (keys []link.Key, last int64, err error) {
	err = s.view(ctx, func(ctx context.Context, t pgx.Tx) error {
		return pgdb.Each(ctx, t, func(row pgx.Row) error {
			var k link.Key
			err := row.Scan(&last, (*string)(&k.Domain), (*string)(&k.Code))
			keys = append(keys, k)
			return err
		}, sqlClicked, after, n)
	})
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("walk clicked links: %w", err)
	case len(keys) < n:
		return keys, 0, nil
	}
	return keys, last, nil
}
