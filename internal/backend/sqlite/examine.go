package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"time"

	"curt/internal/clicks"
	"curt/internal/codegen"
	"curt/internal/link"
)

// What curt doctor asks of a snapshot. Nothing here writes, and all of it reads files
// that may be damaged: an error is one that SQLite had, and what is merely wrong comes
// back as a finding.

// Damage returns what SQLite's own check finds wrong with the file, at most ten lines,
// and rows that refer to none. deep also compares every index with its table, which
// takes several times as long.
func (s *Snapshot) Damage(deep bool) (damage []string, err error) {
	check := sqlQuickCheck
	if deep {
		check = sqlDeepCheck
	}
	err = s.conn.do(func(t *tx) error {
		err := t.each(check, func(row []driver.Value) error {
			if text := next[string](&scanner{row: row}); text != "ok" {
				damage = append(damage, text)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return t.each(sqlForeignCheck, func(row []driver.Value) error {
			damage = append(damage, fmt.Sprintf("row %v of %v refers to a row of %v that is not there", row[1], row[0], row[2]))
			return nil
		})
	})
	if err != nil {
		return damage, fmt.Errorf("check %s: %w", s.path, broken(s.path, err))
	}
	return damage, nil
}

// Rows is what EachLink saw.
type Rows struct {
	Read    uint64  // tombstones included
	Damaged []error // wrapped ErrCorrupt; at most ten
	Hidden  uint64  // rows that their own code does not lead to
}

// MostLinks returns how many links a curt.db has at most, without reading them: some
// numbers were given away and never used. It is 0 where that cannot be read.
func (s *Snapshot) MostLinks() (most int64) {
	err := s.conn.do(func(t *tx) error {
		last, _, err := t.number(sqlLastAlias)
		if err != nil {
			return err
		}
		most = last - math.MinInt64
		for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
			lowest := codegen.FirstPlace(length)
			switch last, found, err := t.number(sqlLastCounted, lowest, codegen.FirstPlace(length+1)); {
			case err != nil:
				return err
			case found:
				most += last - lowest + 1
			}
		}
		return nil
	})
	if err != nil {
		return 0
	}
	return most
}

// EachLink calls f with every link of a curt.db whose checksum holds, in the order of
// storage, until ctx ends; then the error wraps its cause. The file may have an older
// schema: whoever backs up before an upgrade, or restores afterwards, meets one.
func (s *Snapshot) EachLink(ctx context.Context, f func(l *link.Link)) (rows Rows, err error) {
	err = s.conn.do(func(t *tx) error {
		columns, err := columnsOf(t)
		if err != nil {
			return err
		}
		err = t.each(`SELECT `+columns+` FROM links ORDER BY n`, func(row []driver.Value) error {
			if rows.Read%1024 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			rows.Read++
			_, l, err := scanLink(row)
			switch {
			case err == nil:
				f(&l)
			case len(rows.Damaged) < 10:
				rows.Damaged = append(rows.Damaged, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		hidden, _, err := t.number(sqlHiddenRows)
		rows.Hidden = uint64(hidden)
		return err
	})
	if err != nil {
		return rows, fmt.Errorf("read the links of %s: %w", s.path, broken(s.path, err))
	}
	return rows, nil
}

// columnsOf returns linkColumns as a file has them: before schema 8 links had no origin,
// before 9 no sum of the whole, and before 11 no extra fields.
func columnsOf(t *tx) (string, error) {
	known, _, err := t.number(sqlKnowsSums)
	switch {
	case err != nil:
		return "", err
	case known == 0:
		return linkColumnsBefore + `, NULL, NULL, 0, '', NULL`, nil
	case known == 1:
		return linkColumnsBefore + `, origin, NULL, 0, '', NULL`, nil
	case known == 2:
		return linkColumnsBefore + `, origin, whole, 0, '', NULL`, nil
	}
	return linkColumns, nil
}

// StaleLeases returns the lengths of codes that would be handed out twice, because the
// counter of a curt.db lies at or below a code that a link has.
func (s *Snapshot) StaleLeases() (lengths []int, err error) {
	err = s.conn.do(func(t *tx) error {
		for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
			lowest := codegen.FirstPlace(length)
			last, found, err := t.number(sqlLastCounted, lowest, codegen.FirstPlace(length+1))
			if err != nil || !found {
				if err != nil {
					return err
				}
				continue
			}
			next, _, err := t.number(sqlLeased, codegen.Counter(codegen.DefaultPrefix, length))
			if err != nil {
				return err
			}
			if last-lowest >= next {
				lengths = append(lengths, length)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the leases of %s: %w", s.path, undone(err))
	}
	return lengths, nil
}

// KeyDays returns the UTC days whose keys of visitor tags a curt.db has.
func (s *Snapshot) KeyDays() (days []time.Time, err error) {
	err = s.conn.do(func(t *tx) error {
		return t.each(sqlKeyDays, func(row []driver.Value) error {
			sc := scanner{row: row}
			days = append(days, time.Unix(sc.int()*24*60*60, 0).UTC())
			return sc.damage()
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the day keys of %s: %w", s.path, undone(err))
	}
	return days, nil
}

// FirstSeen returns the time of the first request that a clicks.db has counted; zero =
// none.
func (s *Snapshot) FirstSeen() (at time.Time, err error) {
	err = s.conn.do(func(t *tx) error {
		ms, found, err := t.number(sqlFirstSeen)
		if found {
			at = time.UnixMilli(ms).UTC()
		}
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read %s: %w", s.path, undone(err))
	}
	return at, nil
}

// CountedDays calls f with what a clicks.db has counted of each link on each UTC day
// from first on; the zero Key is the orphans.
func (s *Snapshot) CountedDays(ctx context.Context, first uint32, f func(d clicks.LinkDay, c clicks.Counts)) error {
	err := s.conn.do(func(t *tx) error {
		return t.each(sqlDaysFrom, func(row []driver.Value) error {
			sc := scanner{row: row}
			d := clicks.LinkDay{Day: clicks.RowBucket(sc.int()).Ordinal}
			d.Key = link.Key{Domain: link.Domain(sc.text()), Code: link.Code(sc.text())}
			f(d, sc.counts())
			return errors.Join(sc.damage(), ctx.Err())
		}, int64(clicks.RowLinkShift), int64(clicks.RowLinkMask), int64(first)<<clicks.RowDayShift, int64(clicks.RowSlotMask))
	})
	if err != nil {
		return fmt.Errorf("read the days of %s: %w", s.path, undone(err))
	}
	return nil
}

// TotalsOff returns how many links of a clicks.db have totals that are not the sums of
// their days, and one of them.
func (s *Snapshot) TotalsOff(ctx context.Context) (links uint64, example link.Key, err error) {
	// Of each link one number is kept, 8 bytes: a sum that is as linear as counts are,
	// so that days add up to the same as totals.
	var sums []uint64
	err = s.conn.do(func(t *tx) error {
		most, _, err := t.number(sqlMostLinks)
		if err != nil {
			return err
		}
		sums = make([]uint64, most+1)
		err = t.each(sqlSlots, func(row []driver.Value) error {
			sc := scanner{row: row}
			if n := sc.int(); n >= 0 && n <= most {
				sums[n] += mixed(sc.counts())
			}
			return errors.Join(sc.damage(), ctx.Err())
		}, int64(clicks.RowLinkShift), int64(clicks.RowLinkMask), int64(clicks.RowSlotMask))
		if err != nil {
			return err
		}
		return t.each(sqlAllTotals, func(row []driver.Value) error {
			sc := scanner{row: row}
			n, key := sc.int(), link.Key{Domain: link.Domain(sc.text()), Code: link.Code(sc.text())}
			if n < 0 || n > most || mixed(sc.counts()) != sums[n] {
				links, example = links+1, key
			}
			return errors.Join(sc.damage(), ctx.Err())
		})
	})
	if err != nil {
		return 0, link.Key{}, fmt.Errorf("read the totals of %s: %w", s.path, undone(err))
	}
	return links, example, nil
}

// mixed makes one number of counts, by odd factors that lie far apart.
func mixed(c clicks.Counts) uint64 {
	return c.Clicks*0x9E3779B97F4A7C15 + c.Humans*0xC2B2AE3D27D4EB4F + c.Previews*0x165667B19E3779F9 +
		c.Fallbacks*0xD6E8FEB86659FD93 + c.Refused*0xA0761D6478BD642F
}

// The statements above: each reads whole tables, which no request may.
const (
	sqlDeepCheck    = `PRAGMA integrity_check(10)`
	sqlForeignCheck = `PRAGMA foreign_key_check`
	sqlKnowsSums    = `SELECT count(*) FROM pragma_table_info('links') WHERE name IN ('origin', 'whole', 'extra')`
	sqlHiddenRows   = `SELECT count(*) FROM links WHERE n < 0 AND NOT EXISTS
	(SELECT 1 FROM aliases WHERE aliases.domain = links.domain AND aliases.code = links.code AND aliases.n = links.n)`
	sqlKeyDays   = `SELECT day FROM day_keys ORDER BY day`
	sqlFirstSeen = `SELECT min(first_seen) FROM links WHERE first_seen > 0`
	sqlDaysFrom  = `SELECT r.id, l.domain, l.code, r.clicks, r.humans, r.previews, r.fallbacks, r.refused
	FROM rollups r JOIN links l ON l.n = r.id >> ? & ? WHERE r.id >= ? AND r.id & ? = 0`
	sqlMostLinks = `SELECT coalesce(max(n), 0) FROM links`
	sqlSlots     = `SELECT id >> ? & ?, clicks, humans, previews, fallbacks, refused FROM rollups WHERE id & ? = 0`
	sqlAllTotals = `SELECT n, domain, code, clicks, humans, previews, fallbacks, refused FROM links`
)

// SearchSchema returns the number of the newest migration that this program knows of
// search.db.
func SearchSchema() (int64, error) { return newest(searchMigrations, "migrations/search") }
