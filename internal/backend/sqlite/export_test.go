package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"strings"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldjobs"
	"curt/internal/backend/coldsql/coldreviews"
	"curt/internal/backend/sqlite/accounts"
	"curt/internal/backend/sqlite/leases"
	"curt/internal/backend/sqlite/linklist"
	"curt/internal/backend/sqlite/linkrow"
	"curt/internal/backend/sqlite/reservations"
	"curt/internal/backend/sqlite/sqlitedb"
)

// RequestQueries are all statements that a request runs on curt.db, by name.
func RequestQueries() map[string]string {
	all := map[string]string{
		"target at": sqlTargetAt, "link at": linkrow.SelectRow, "link by id": sqlLinkByID, "alias": sqlAlias, "place taken": sqlPlaceTaken,
		"alias below": sqlAliasBelow, "alias above": sqlAliasAbove, "discard link": sqlDiscardLink,
		"workspace": sqlWorkspace, "insert workspace": sqlInsertWorkspace, "insert link": sqlInsertLink,
		"last alias": sqlLastAlias, "insert alias": sqlInsertAlias, "insert twinless": sqlInsertTwinless, "delete alias": sqlDeleteAlias, "insert aliased": sqlInsertAliased, "update link": sqlUpdateLink,
		"move link": sqlMoveLink, "update spent": sqlUpdateSpent, "insert change": sqlInsertChange, "trim changes": sqlTrimChanges, "insert creates": sqlInsertCreates, "trim creates": sqlTrimCreates, "creates": sqlCreates, "last creates": sqlLastCreates,
		"creates leased": sqlCreatesLeased, "rows between": sqlRowsBetween, "kept for": sqlKeptFor, "creates kept for": sqlCreatesKeptFor,
		"last change": sqlLastChange, "changes": sqlChanges, "events": sqlEvents, "first after": sqlFirstAfter, "expiry changes": sqlExpiryChanges, "twins": sqlTwins, "has twin": sqlHasTwin, "twin place": sqlTwinPlace,
		"expired": sqlExpired, "ended at": sqlEndedAt + `((?), (?))`, "chosen": sqlChosen,
	}
	maps.Copy(all, linklist.Statements())
	maps.Copy(all, leases.Statements())
	maps.Copy(all, reservations.Statements())
	maps.Copy(all, accounts.Statements())
	d := coldsql.SQLite()
	maps.Copy(all, d.Statements())
	maps.Copy(all, coldjobs.Statements(d))
	maps.Copy(all, coldreviews.Statements(d))
	maps.Copy(all, d.Lists())
	maps.Copy(all, coldreviews.Lists(d))
	// These read one index from end to end: it holds nothing else than what is asked for.
	delete(all, "bans")
	delete(all, "verdicts")
	return all
}

// Plan returns SQLite's plan of a query, one step per line.
func (s *Links) Plan(ctx context.Context, query string) (string, error) {
	var steps []string
	err := s.db.Read(ctx, func(t *sqlitedb.Tx) error {
		args := make([]any, strings.Count(query, "?"))
		return t.Each("EXPLAIN QUERY PLAN "+query, func(row []driver.Value) error {
			steps = append(steps, fmt.Sprint(row[3]))
			return nil
		}, args...)
	})
	return strings.Join(steps, "\n"), err
}

// HoldLists keeps every connection for lists busy until f returns.
func (s *Links) HoldLists(ctx context.Context, f func()) error {
	var hold func(n int) error
	hold = func(n int) error {
		if n == 0 {
			f()
			return nil
		}
		return s.db.ReadList(ctx, func(*sqlitedb.Tx) error { return hold(n - 1) })
	}
	return hold(s.linkReader.config.ListReaders)
}

// SetDisk lets f stand for a look at the files.
func (s *Links) SetDisk(f func() error) { s.db.SetFileReader(func(string) error { return f() }) }

// Hold keeps the writer from writing until f returns.
func (s *Links) Hold(ctx context.Context, f func() error) error {
	return s.db.Exclusive(ctx, func(*sqlitedb.Tx) error { return f() })
}

// Exec runs a statement on the writing connection while nobody writes.
func (s *Links) Exec(ctx context.Context, query string) error {
	return s.db.Exclusive(ctx, func(t *sqlitedb.Tx) error { return t.Each(query, func([]driver.Value) error { return nil }) })
}

// CountRows returns the first column of the first row of a query.
func (s *Links) CountRows(ctx context.Context, query string) (n int64, err error) {
	err = s.db.Read(ctx, func(t *sqlitedb.Tx) (err error) {
		n, _, err = t.Number(query)
		return err
	})
	return n, err
}

// Synchronous returns what the writing connection waits for: 1 = NORMAL, 2 = FULL.
func (s *Links) Synchronous(ctx context.Context) (n int64, err error) {
	err = s.db.Exclusive(ctx, func(t *sqlitedb.Tx) (err error) {
		n, _, err = t.Number("PRAGMA synchronous")
		return err
	})
	return n, err
}

// Write runs a statement as a caller's write.
func (s *Links) Write(ctx context.Context, query string) error {
	return s.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
		_, err := t.Exec(query)
		return err
	})
}

// Queued returns how many callers wait for the next transaction.
func (s *Links) Queued() int { return s.db.Queued() }

// Checkpoint does what Run does when the WAL is long.
func (s *Links) Checkpoint(ctx context.Context) error { return s.db.Checkpoint(ctx) }

// SetLarge makes the store read ahead as one of many links does, until the next checkpoint.
func (s *Links) SetLarge(on bool) { s.ahead.on.Store(on) }

// ReaderCaches returns the page caches of all readers, in the order in which they are lent.
func (s *Links) ReaderCaches(ctx context.Context) (caches []int64, err error) {
	var lend func(n int) error
	lend = func(n int) error {
		if n == 0 {
			return nil
		}
		return s.db.Read(ctx, func(t *sqlitedb.Tx) error {
			size, _, err := t.Number("PRAGMA cache_size")
			caches = append(caches, size)
			return errors.Join(err, lend(n-1))
		})
	}
	return caches, lend(s.linkReader.config.Readers)
}

// Trim shortens the logs.
func (s *Links) Trim(ctx context.Context) error {
	return s.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
		last, _, err := t.Number(sqlLastChange)
		if err != nil {
			return err
		}
		created, _, err := t.Number(sqlLastCreates)
		if err != nil {
			return err
		}
		return errors.Join(s.trim(t, last, trimmedChanges()), s.trim(t, created, trimmedCreates()))
	})
}
