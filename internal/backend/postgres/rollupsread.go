package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"curt/internal/clicks"
	"curt/internal/link"
)

const (
	totalColumns = `clicks, humans, previews, fallbacks, refused, first_seen, last_clicked`

	sqlClickTotals = `SELECT d.turn, t.clicks, t.humans, t.previews, t.fallbacks, t.refused, t.first_seen, t.last_clicked
	FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS d (domain, code, turn)
	JOIN click_totals AS t ON t.domain = d.domain AND t.code = d.code`
	sqlClickTotal = `SELECT n, ` + totalColumns + ` FROM click_totals WHERE domain = $1 AND code = $2`
	sqlClicked    = `SELECT n, domain, code FROM click_totals WHERE n > $1 ORDER BY n LIMIT $2`

	// A range is a day of one link; LATERAL asks the index for each.
	sqlRollups = `SELECT r.id, r.clicks, r.humans, r.previews, r.fallbacks, r.refused, r.minutes, NULL::bytea, `
	sqlRanges  = ` FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS asked (first, last, turn)
	CROSS JOIN LATERAL (SELECT * FROM click_rollups WHERE id BETWEEN asked.first AND asked.last ORDER BY id) AS r
	ORDER BY asked.turn, r.id`

	sqlRollupRows     = sqlRollups + `NULL::bytea` + sqlRanges
	sqlRollupVisitors = sqlRollups + `r.visitors` + sqlRanges
	sqlRollupSums     = `SELECT r.id, r.dimensions` + sqlRanges
)

// scanRollup reads rollupColumns.
func scanRollup(row pgx.Row) (id int64, r clicks.PackedRow, err error) {
	var all [5]int64
	err = row.Scan(&id, &all[0], &all[1], &all[2], &all[3], &all[4], &r.Minutes, &r.Dimensions, &r.Visitors)
	r.Counts = countsOf(all)
	return id, r, err
}

func countsOf(all [5]int64) clicks.Counts {
	return clicks.Counts{
		Clicks: uint64(all[0]), Humans: uint64(all[1]), Previews: uint64(all[2]), Fallbacks: uint64(all[3]), Refused: uint64(all[4]),
	}
}

// scanTotal reads whatever comes first and then totalColumns.
func scanTotal(row pgx.Row, first *int64) (t clicks.Total, err error) {
	var all [5]int64
	err = row.Scan(first, &all[0], &all[1], &all[2], &all[3], &all[4], &t.FirstSeen, &t.LastClicked)
	t.Counts = countsOf(all)
	return t, err
}

// Totals implements clicks.RollupStore.
func (s *Rollups) Totals(ctx context.Context, keys []link.Key) (totals []clicks.Total, generation uint64, err error) {
	totals = make([]clicks.Total, len(keys))
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
		return each(ctx, t, func(row pgx.Row) error {
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

// Read implements clicks.RollupStore.
func (s *Rollups) Read(ctx context.Context, k link.Key, want clicks.Want, spans ...clicks.Span) (found clicks.Stored, err error) {
	query := sqlRollupRows
	if want&clicks.WantVisitors != 0 {
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
		return clicks.Stored{}, fmt.Errorf("read roll-ups of %s: %w", k, err)
	}
	return found, nil
}

// Sum implements clicks.RollupStore.
func (s *Rollups) Sum(ctx context.Context, k link.Key, into *clicks.Sums, spans ...clicks.Span) (generation uint64, err error) {
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
		return 0, fmt.Errorf("add up dimensions of %s: %w", k, err)
	}
	return generation, nil
}

// walk calls scan, in one view, with each row of the link in the spans, by bucket within
// each span.
func (s *Rollups) walk(ctx context.Context, k link.Key, spans []clicks.Span, query string, scan func(pgx.Row) error) (generation uint64, total clicks.Total, err error) {
	err = s.view(ctx, func(ctx context.Context, t pgx.Tx) error {
		state, err := s.state(ctx, t)
		if err != nil {
			return err
		}
		generation = state.Generation
		var n int64
		found, err := one(ctx, t, func(row pgx.Row) (err error) {
			total, err = scanTotal(row, &n)
			return err
		}, sqlClickTotal, string(k.Domain), string(k.Code))
		if err != nil || !found {
			total = clicks.Total{}
			return err
		}
		var ranges []clicks.RowRange
		for _, span := range spans {
			ranges = clicks.RowRanges(ranges, n, span)
		}
		if len(ranges) == 0 {
			return nil
		}
		first, last := make([]int64, len(ranges)), make([]int64, len(ranges))
		for i, r := range ranges {
			first[i], last[i] = r.First, r.Last
		}
		return each(ctx, t, scan, query, first, last)
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
		return each(ctx, t, func(row pgx.Row) error {
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
