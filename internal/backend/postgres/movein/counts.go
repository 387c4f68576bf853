package movein

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/postgres/pgdb"
)

// Total is a row of click_totals.
type Total struct {
	N            int64
	Domain, Code string
	Counts       [7]int64 // clicks, humans, previews, fallbacks, refused, first seen, last clicked
}

// Rollup is a row of click_rollups.
type Rollup struct {
	ID                            int64
	Counts                        [5]int64
	Minutes, Dimensions, Visitors []byte // nil = NULL
}

// Counts are the statistics of a Target.
type Counts struct{ t *Target }

// Counts returns the statistics.
func (t *Target) Counts() Counts { return Counts{t} }

// digest stands for the row.
func (r *Total) digest() coldcopy.Digest {
	return coldcopy.OfRow("totals", append([]int64{r.N}, r.Counts[:]...), []byte(r.Domain), []byte(r.Code))
}

func (r *Rollup) digest() coldcopy.Digest {
	return coldcopy.OfRow("rollups", append([]int64{r.ID}, r.Counts[:]...), r.Minutes, r.Dimensions, r.Visitors)
}

// DigestOf is that of rows of the folder.
func DigestOf(totals []Total, rollups []Rollup) (sum coldcopy.Digest) {
	for i := range totals {
		sum.Add(totals[i].digest())
	}
	for i := range rollups {
		sum.Add(rollups[i].digest())
	}
	return sum
}

func totalColumns() []string {
	return []string{"n", "domain", "code", "clicks", "humans", "previews", "fallbacks", "refused", "first_seen", "last_clicked"}
}

func rollupColumns() []string {
	return []string{"id", "clicks", "humans", "previews", "fallbacks", "refused", "minutes", "dimensions", "visitors"}
}

// PutTotals stores a page of totals, with how far the move has come. COPY keeps their numbers, which
// their roll-ups have in them.
func (c Counts) PutTotals(ctx context.Context, totals []Total, s *State) error {
	rows := make([][]any, len(totals))
	for i := range totals {
		r := &totals[i]
		rows[i] = []any{r.N, r.Domain, r.Code}
		for _, n := range r.Counts {
			rows[i] = append(rows[i], n)
		}
	}
	return c.copy(ctx, "click_totals", totalColumns(), rows, s)
}

// PutRollups stores a page of roll-ups.
func (c Counts) PutRollups(ctx context.Context, rollups []Rollup, s *State) error {
	rows := make([][]any, len(rollups))
	for i := range rollups {
		r := &rollups[i]
		rows[i] = []any{r.ID}
		for _, n := range r.Counts {
			rows[i] = append(rows[i], n)
		}
		rows[i] = append(rows[i], r.Minutes, r.Dimensions, r.Visitors)
	}
	return c.copy(ctx, "click_rollups", rollupColumns(), rows, s)
}

func (c Counts) copy(ctx context.Context, table string, columns []string, rows [][]any, s *State) error {
	return c.t.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows)); err != nil {
			return fmt.Errorf("store %s: %w", table, err)
		}
		return save(ctx, tx, s)
	})
}

const (
	sqlDropCounts = `TRUNCATE click_totals, click_rollups`
	sqlGoOn       = `SELECT setval(pg_get_serial_sequence('click_totals', 'n'), greatest(1, (SELECT max(n) FROM click_totals)))`
	sqlPutWriter  = `INSERT INTO click_writers (instance, generation, segment, place, complete, seen) VALUES ($1, $2, $3, $4, 0, now())
	ON CONFLICT (instance) DO UPDATE SET generation = excluded.generation, segment = excluded.segment, place = excluded.place, complete = 0, seen = now()`
)

// Drop forgets all that was counted: it is copied anew.
func (c Counts) Drop(ctx context.Context, s *State) error {
	return c.t.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlDropCounts); err != nil {
			return err
		}
		return save(ctx, tx, s)
	})
}

// Position is how much of the folder's click log is counted.
type Position struct {
	Generation uint64
	Segment    uint64
	Offset     int64
}

// PutWriter says how much of the folder's click log the counts have: from there on its clicks are
// counted as those of any server.
func (c Counts) PutWriter(ctx context.Context, at Position, s *State) error {
	return c.t.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlGoOn); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlPutWriter, s.Name, int64(at.Generation), int64(at.Segment), at.Offset); err != nil {
			return err
		}
		return save(ctx, tx, s)
	})
}

const (
	sqlTotalsAfter = `SELECT n, domain, code, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked FROM click_totals
	WHERE n > $1 ORDER BY n LIMIT $2`
	sqlRollupsAfter = `SELECT id, clicks, humans, previews, fallbacks, refused, minutes, dimensions, visitors FROM click_rollups
	WHERE id > $1 ORDER BY id LIMIT $2`
)

// EachTotals calls f with all totals, by pages.
func (c Counts) EachTotals(ctx context.Context, f func([]Total) error) error {
	return walk(ctx, c.t.db, sqlTotalsAfter, func(row pgx.Row) (r Total, err error) {
		n := &r.Counts
		err = row.Scan(&r.N, &r.Domain, &r.Code, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6])
		return r, err
	}, func(r *Total) int64 { return r.N }, f)
}

// EachRollups calls f with all roll-ups, by pages.
func (c Counts) EachRollups(ctx context.Context, f func([]Rollup) error) error {
	return walk(ctx, c.t.db, sqlRollupsAfter, func(row pgx.Row) (r Rollup, err error) {
		n := &r.Counts
		err = row.Scan(&r.ID, &n[0], &n[1], &n[2], &n[3], &n[4], &r.Minutes, &r.Dimensions, &r.Visitors)
		return r, err
	}, func(r *Rollup) int64 { return r.ID }, f)
}

// Digest reads all totals and roll-ups.
func (c Counts) Digest(ctx context.Context, told func(rows int64)) (sum coldcopy.Digest, err error) {
	err = c.EachTotals(ctx, func(rows []Total) error {
		sum.Add(DigestOf(rows, nil))
		told(sum.Rows)
		return nil
	})
	if err != nil {
		return sum, err
	}
	err = c.EachRollups(ctx, func(rows []Rollup) error {
		sum.Add(DigestOf(nil, rows))
		told(sum.Rows)
		return nil
	})
	return sum, err
}

// walk calls f with all rows of a query by pages, in the order of a number.
func walk[T any](ctx context.Context, db *pgdb.Database, query string, scan func(pgx.Row) (T, error), number func(*T) int64, f func([]T) error) error {
	for after := int64(-1 << 63); ; {
		var page []T
		err := db.ReadMany(ctx, func(ctx context.Context, q pgdb.Querier) error {
			page = page[:0]
			return pgdb.Each(ctx, q, func(row pgx.Row) error {
				r, err := scan(row)
				page = append(page, r)
				return err
			}, query, after, walkPage)
		})
		if err != nil {
			return err
		}
		if len(page) > 0 {
			after = number(&page[len(page)-1])
			if err := f(page); err != nil {
				return err
			}
		}
		if len(page) < walkPage {
			return nil
		}
	}
}

// walkPage is how many rows are read together.
const walkPage = 2000

const sqlHasCounts = `SELECT to_regclass('click_totals') IS NOT NULL`

// There reports whether clicks were ever counted here.
func (c Counts) There(ctx context.Context) (there bool, err error) {
	err = c.t.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error { return q.QueryRow(ctx, sqlHasCounts).Scan(&there) })
	return there, err
}
