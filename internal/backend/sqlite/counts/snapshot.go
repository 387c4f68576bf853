package counts

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// Snapshot is a clicks.db as it was at one moment, read beside the process that writes it.
type Snapshot struct{ *snapshot.Snapshot }

// TakeSnapshot returns the state of now of a file that is there.
func TakeSnapshot(ctx context.Context, path string) (Snapshot, error) {
	s, err := snapshot.Take(ctx, path)
	return Snapshot{s}, err
}

// Schema returns the number of the newest migration that this program knows of clicks.db.
func Schema() (int64, error) { return sqlitedb.NewestMigration(migrations, "migrations/clicks") }

// Counted returns how far the file, a clicks.db, has counted the click log.
func (s Snapshot) Counted() (state rollup.State, err error) {
	err = s.View("read the position of", func(t *sqlitedb.Tx) error {
		state, err = loadState(t)
		return err
	})
	return state, err
}

const sqlTotalsFrom = `SELECT n, domain, code, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked
		FROM links WHERE n > ? ORDER BY n LIMIT ?`

// Totals returns up to n totals of a clicks.db, as Links does, without those of groups:
// they are sums of what is there.
func (s Snapshot) Totals(after link.Cursor, n int) (page []rollup.LinkDelta, next link.Cursor, err error) {
	err = s.Page(after, n, sqlTotalsFrom, &next, func(row []driver.Value) (int64, error) {
		r := sqlitedb.Scanner{Row: row}
		at := r.Int()
		d := rollup.LinkDelta{Key: link.Key{Domain: link.Domain(r.Text()), Code: link.Code(r.Text())}}
		d.Total.Counts = counts(&r)
		d.Total.FirstSeen, d.Total.LastClicked = r.Int(), r.Int()
		if !clicks.IsGroup(d.Key) {
			page = append(page, d)
		}
		return at, r.Damage()
	})
	return page, next, err
}

const sqlRollupsFrom = `SELECT id, clicks, humans, previews, fallbacks, refused, minutes, dimensions, visitors
		FROM rollups WHERE id > ? ORDER BY id LIMIT ?`

// Rollups returns up to n rows of a clicks.db, oldest day first, as Totals does: each with
// its link and its one bucket.
func (s Snapshot) Rollups(after link.Cursor, n int) (page []rollup.LinkDelta, next link.Cursor, err error) {
	var numbers []int64
	err = s.Page(after, n, sqlRollupsFrom, &next, func(row []driver.Value) (int64, error) {
		id, b, err := scanRollup(row)
		numbers = append(numbers, id>>rollup.RowLinkShift&rollup.RowLinkMask)
		page = append(page, rollup.LinkDelta{Buckets: []rollup.BucketDelta{b}})
		return id, err
	})
	if err == nil {
		err = s.View("read", func(t *sqlitedb.Tx) error { return nameRollups(t, numbers, page) })
	}
	if err != nil {
		return nil, "", err
	}
	return slices.DeleteFunc(page, func(d rollup.LinkDelta) bool { return clicks.IsGroup(d.Key) }), next, nil
}

const sqlKeyOf = `SELECT domain, code FROM links WHERE n = ?`

// nameRollups finds the links of the numbers.
func nameRollups(t *sqlitedb.Tx, numbers []int64, page []rollup.LinkDelta) error {
	for i, n := range numbers {
		found, err := t.One(sqlKeyOf, func(row []driver.Value) error {
			r := sqlitedb.Scanner{Row: row}
			page[i].Key = link.Key{Domain: link.Domain(r.Text()), Code: link.Code(r.Text())}
			return r.Damage()
		}, n)
		if err == nil && !found {
			err = fmt.Errorf("roll-ups of link %d, which is unknown: %w", n, sqlitedb.ErrCorrupt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const sqlFirstSeen = `SELECT min(first_seen) FROM links WHERE first_seen > 0`

// FirstSeen returns the time of the first request that a clicks.db has counted; zero =
// none.
func (s Snapshot) FirstSeen() (at time.Time, err error) {
	err = s.View("read", func(t *sqlitedb.Tx) error {
		ms, found, err := t.Number(sqlFirstSeen)
		if found {
			at = time.UnixMilli(ms).UTC()
		}
		return err
	})
	return at, err
}

const sqlDaysFrom = `SELECT r.id, l.domain, l.code, r.clicks, r.humans, r.previews, r.fallbacks, r.refused
	FROM rollups r JOIN links l ON l.n = r.id >> ? & ? WHERE r.id >= ? AND r.id & ? = 0`

// CountedDays calls f with what a clicks.db has counted of each link on each UTC day
// from first on; the zero Key is the orphans.
func (s Snapshot) CountedDays(ctx context.Context, first uint32, f func(d rollup.LinkDay, c rollup.Counts)) error {
	err := s.View("read the days of", func(t *sqlitedb.Tx) error {
		return t.Each(sqlDaysFrom, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			d := rollup.LinkDay{Day: rollup.RowBucket(sc.Int()).Ordinal}
			d.Key = link.Key{Domain: link.Domain(sc.Text()), Code: link.Code(sc.Text())}
			f(d, counts(&sc))
			return errors.Join(sc.Damage(), ctx.Err())
		}, int64(rollup.RowLinkShift), int64(rollup.RowLinkMask), int64(first)<<rollup.RowDayShift, int64(rollup.RowSlotMask))
	})
	return err
}

const (
	sqlMostLinks = `SELECT coalesce(max(n), 0) FROM links`
	sqlSlots     = `SELECT id >> ? & ?, clicks, humans, previews, fallbacks, refused FROM rollups WHERE id & ? = 0`
	sqlAllTotals = `SELECT n, domain, code, clicks, humans, previews, fallbacks, refused FROM links`
)

// TotalsOff returns how many links of a clicks.db have totals that are not the sums of
// their days, and one of them.
func (s Snapshot) TotalsOff(ctx context.Context) (links uint64, example link.Key, err error) {
	// Of each link one number is kept, 8 bytes: a sum that is as linear as counts are,
	// so that days add up to the same as totals.
	var sums []uint64
	err = s.View("read the totals of", func(t *sqlitedb.Tx) error {
		most, _, err := t.Number(sqlMostLinks)
		if err != nil {
			return err
		}
		sums = make([]uint64, most+1)
		err = t.Each(sqlSlots, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			if n := sc.Int(); n >= 0 && n <= most {
				sums[n] += mixed(counts(&sc))
			}
			return errors.Join(sc.Damage(), ctx.Err())
		}, int64(rollup.RowLinkShift), int64(rollup.RowLinkMask), int64(rollup.RowSlotMask))
		if err != nil {
			return err
		}
		return t.Each(sqlAllTotals, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			n, key := sc.Int(), link.Key{Domain: link.Domain(sc.Text()), Code: link.Code(sc.Text())}
			if n < 0 || n > most || mixed(counts(&sc)) != sums[n] {
				links, example = links+1, key
			}
			return errors.Join(sc.Damage(), ctx.Err())
		})
	})
	return links, example, err
}

// mixed makes one number of counts, by odd factors that lie far apart.
func mixed(c rollup.Counts) uint64 {
	return c.Clicks*0x9E3779B97F4A7C15 + c.Humans*0xC2B2AE3D27D4EB4F + c.Previews*0x165667B19E3779F9 +
		c.Fallbacks*0xD6E8FEB86659FD93 + c.Refused*0xA0761D6478BD642F
}
