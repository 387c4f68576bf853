package moveout

import (
	"context"
	"database/sql/driver"
	"errors"

	"curt/internal/backend/sqlite/counts"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/clicks/rollup"
)

// Counts is a clicks.db as it was at one moment, with its rows as they are stored: PostgreSQL has
// the same numbers and packed columns.
type Counts struct {
	counts.Snapshot
	State rollup.State // what it has counted
}

// OpenCounts opens a clicks.db.
func OpenCounts(ctx context.Context, path string) (*Counts, error) {
	s, err := counts.TakeSnapshot(ctx, path)
	if err != nil {
		return nil, err
	}
	c := &Counts{Snapshot: s}
	if c.State, err = s.Counted(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return c, nil
}

// Total is a row of totals.
type Total struct {
	N            int64
	Domain, Code string
	Counts       [7]int64 // clicks, humans, previews, fallbacks, refused, first seen, last clicked
}

// Rollup is a row of roll-ups.
type Rollup struct {
	ID                            int64
	Counts                        [5]int64
	Minutes, Dimensions, Visitors []byte // nil = nothing
}

const (
	sqlTotals = `SELECT n, domain, code, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked FROM links
	WHERE n > ? ORDER BY n LIMIT ?`
	sqlRollups = `SELECT id, clicks, humans, previews, fallbacks, refused, minutes, dimensions, visitors FROM rollups
	WHERE id > ? ORDER BY id LIMIT ?`
)

// Totals returns up to n rows of totals after a number.
func (c *Counts) Totals(after int64, n int) (rows []Total, err error) {
	err = c.View("read the totals of", func(t *sqlitedb.Tx) error {
		return t.Each(sqlTotals, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			r := Total{N: sc.Int(), Domain: sc.Text(), Code: sc.Text()}
			for i := range r.Counts {
				r.Counts[i] = sc.Int()
			}
			rows = append(rows, r)
			return sc.Damage()
		}, after, int64(n))
	})
	return rows, err
}

// Rollups returns up to n rows of roll-ups after an id.
func (c *Counts) Rollups(after int64, n int) (rows []Rollup, err error) {
	err = c.View("read the roll-ups of", func(t *sqlitedb.Tx) error {
		return t.Each(sqlRollups, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			r := Rollup{ID: sc.Int()}
			for i := range r.Counts {
				r.Counts[i] = sc.Int()
			}
			r.Minutes, r.Dimensions, r.Visitors = kept3(&sc)
			rows = append(rows, r)
			return sc.Damage()
		}, after, int64(n))
	})
	return rows, err
}

// kept3 copies three columns, whose bytes are the driver's.
func kept3(sc *sqlitedb.Scanner) (a, b, c []byte) {
	var all [3][]byte
	for i := range all {
		if v := sc.Blob(); v != nil {
			all[i] = append([]byte{}, v...)
		}
	}
	return all[0], all[1], all[2]
}

const sqlRequests = `SELECT coalesce(sum(clicks + previews + fallbacks + refused), 0) FROM links`

// Requests is the sum of all that was counted, whatever became of it. What counts for a link counts
// for its group too.
func (c *Counts) Requests() (n int64, err error) {
	err = c.View("sum the counts of", func(t *sqlitedb.Tx) error {
		n, _, err = t.Number(sqlRequests)
		return err
	})
	return n, err
}
