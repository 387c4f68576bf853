package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"math"

	"curt/internal/backend/sqlite/accounts"
	"curt/internal/backend/sqlite/leases"
	"curt/internal/backend/sqlite/linkrow"
	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

// Snapshot is a curt.db as it was at one moment, read beside the process that writes it.
type Snapshot struct {
	*snapshot.Snapshot
	accounts.StoredJournal
	leases.Stored
}

// TakeSnapshot returns the state of now of a file that is there.
func TakeSnapshot(ctx context.Context, path string) (*Snapshot, error) {
	s, err := snapshot.Take(ctx, path)
	if err != nil {
		return nil, err
	}
	return SnapshotOf(s), nil
}

// SnapshotOf returns what a snapshot says of links.
func SnapshotOf(s *snapshot.Snapshot) *Snapshot {
	return &Snapshot{s, accounts.JournalIn(s), leases.StoredIn(s)}
}

// Schema returns the number of the newest migration that this program knows of curt.db.
func Schema() (int64, error) { return sqlitedb.NewestMigration(linksMigrations, "migrations/links") }

// Links returns up to n links of a curt.db, tombstones included, in the order in which
// they lie, and the cursor after the last; the empty one at the end. A walk with Renew
// between the calls sees every link that existed throughout once. Rows whose checksum
// does not hold are not in the page; each has its error, wrapped ErrCorrupt, in damaged.
func (s *Snapshot) Links(after link.Cursor, n int) (page []link.Link, damaged []error, next link.Cursor, err error) {
	var columns string
	err = s.View("read", func(t *sqlitedb.Tx) (err error) {
		columns, err = linkrow.ColumnsOf(t)
		return err
	})
	if err != nil {
		return nil, nil, "", err
	}
	err = s.Page(after, n, `SELECT `+columns+` FROM links WHERE n > ? ORDER BY n LIMIT ?`, &next, func(row []driver.Value) (int64, error) {
		at, l, err := linkrow.Scan(row)
		if errors.Is(err, sqlitedb.ErrCorrupt) {
			damaged = append(damaged, err)
			return at, nil
		}
		page = append(page, l)
		return at, err
	})
	return page, damaged, next, err
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
	err := s.View("count the links of", func(t *sqlitedb.Tx) error {
		last, _, err := t.Number(sqlLastAlias)
		if err != nil {
			return err
		}
		most = last - math.MinInt64
		counted, err := leases.CountedIDs(t)
		for _, ids := range counted {
			most += ids
		}
		return err
	})
	if err != nil {
		return 0
	}
	return most
}

const sqlHiddenRows = `SELECT count(*) FROM links WHERE n < 0 AND NOT EXISTS
	(SELECT 1 FROM aliases WHERE aliases.domain = links.domain AND aliases.code = links.code AND aliases.n = links.n)`

// EachLink calls f with every link of a curt.db whose checksum holds, in the order of
// storage, until ctx ends; then the error wraps its cause. The file may have an older
// schema: whoever backs up before an upgrade, or restores afterwards, meets one.
func (s *Snapshot) EachLink(ctx context.Context, f func(l *link.Link)) (rows Rows, err error) {
	err = s.View("read the links of", func(t *sqlitedb.Tx) error {
		columns, err := linkrow.ColumnsOf(t)
		if err != nil {
			return err
		}
		err = t.Each(`SELECT `+columns+` FROM links ORDER BY n`, func(row []driver.Value) error {
			if rows.Read%1024 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			rows.Read++
			_, l, err := linkrow.Scan(row)
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
		hidden, _, err := t.Number(sqlHiddenRows)
		rows.Hidden = uint64(hidden)
		return err
	})
	return rows, err
}
