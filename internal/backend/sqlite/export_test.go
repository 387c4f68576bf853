package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"strings"

	"curt/internal/backend/coldsql"
)

// RequestQueries are all statements that a request runs on curt.db, by name.
func RequestQueries() map[string]string {
	all := map[string]string{
		"target at": sqlTargetAt, "link at": sqlLinkAt, "link by id": sqlLinkByID, "alias": sqlAlias, "place taken": sqlPlaceTaken,
		"alias below": sqlAliasBelow, "alias above": sqlAliasAbove, "oldest past": sqlOldestPast, "newest past": sqlNewestPast, "discard link": sqlDiscardLink,
		"workspace": sqlWorkspace, "insert workspace": sqlInsertWorkspace, "insert link": sqlInsertLink,
		"last alias": sqlLastAlias, "insert alias": sqlInsertAlias, "update link": sqlUpdateLink,
		"move link": sqlMoveLink, "update spent": sqlUpdateSpent, "insert change": sqlInsertChange, "trim changes": sqlTrimChanges, "insert creates": sqlInsertCreates, "trim creates": sqlTrimCreates, "creates": sqlCreates, "last creates": sqlLastCreates,
		"creates leased": sqlCreatesLeased, "lease creates": sqlLeaseCreates, "rows between": sqlRowsBetween, "kept for": sqlKeptFor,
		"last change": sqlLastChange, "changes": sqlChanges, "events": sqlEvents, "twins": sqlTwins, "twin place": sqlTwinPlace,
		"oldest": sqlOldest, "newest": sqlNewest, "expired": sqlExpired, "chosen": sqlChosen,
		"lease": sqlLease, "leased": sqlLeased, "day key": sqlDayKey, "insert day": sqlInsertDay,
		"old day": sqlOldDay, "drop days": sqlDropDays, "last counted": sqlLastCounted, "setting": sqlSetting,
		"progress": sqlProgress, "keep progress": sqlKeepProgress,
	}
	d := coldsql.SQLite()
	maps.Copy(all, d.Statements())
	maps.Copy(all, d.Lists())
	// These read one index from end to end: it holds nothing else than what is asked for.
	delete(all, "bans")
	delete(all, "pending cases")
	return all
}

// PendingCases is a statement that reads one index from end to end: it holds nothing else
// than what is asked for.
func PendingCases() string { return coldsql.SQLite().Lists()["pending cases"] }

// Plan returns SQLite's plan of a query, one step per line.
func (s *Links) Plan(ctx context.Context, query string) (string, error) {
	var steps []string
	err := s.read(ctx, func(t *tx) error {
		args := make([]any, strings.Count(query, "?"))
		return t.each("EXPLAIN QUERY PLAN "+query, func(row []driver.Value) error {
			steps = append(steps, fmt.Sprint(row[3]))
			return nil
		}, args...)
	})
	return strings.Join(steps, "\n"), err
}

// HoldLists keeps every connection for lists busy until f returns.
func (s *Links) HoldLists(f func()) {
	for range cap(s.lists.free) {
		<-s.lists.free
	}
	f()
	for range cap(s.lists.free) {
		s.lists.free <- struct{}{}
	}
}

// SetDisk lets f stand for a look at the files.
func (s *Links) SetDisk(f func() error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.disk.read = func(string) error { return f() }
}

// Hold keeps the writer from writing until f returns.
func (s *Links) Hold(ctx context.Context, f func() error) error { return s.writer.exclusive(ctx, f) }

// Exec runs a statement on the writing connection while nobody writes.
func (s *Links) Exec(ctx context.Context, query string) error {
	return s.writer.exclusive(ctx, func() error {
		return s.writer.conn.do(func(t *tx) error { return t.each(query, ignore) })
	})
}

// Synchronous returns what the writing connection waits for: 1 = NORMAL, 2 = FULL.
func (s *Links) Synchronous(ctx context.Context) (n int64, err error) {
	err = s.writer.exclusive(ctx, func() error {
		return s.writer.conn.do(func(t *tx) (err error) {
			n, _, err = t.number("PRAGMA synchronous")
			return err
		})
	})
	return n, err
}

// Write runs a statement as a caller's write.
func (s *Links) Write(ctx context.Context, query string) error {
	return s.writer.write(ctx, 1, func(t *tx) error {
		_, err := t.exec(query)
		return err
	})
}

// Queued returns how many callers wait for the next transaction.
func (s *Links) Queued() int {
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	return len(s.writer.queue)
}

// Checkpoint does what Run does when the WAL is long.
func (s *Links) Checkpoint(ctx context.Context) error { return s.checkpoint(ctx, sqlCheckpoint) }

// SetLarge makes the store read ahead as one of many links does, until the next checkpoint.
func (s *Links) SetLarge(on bool) { s.ahead.on.Store(on) }

// Segments returns how many segments the index has; nobody may write meanwhile.
func (s *Search) Segments() int { return len(s.state.segments) }

// ReaderCaches takes all readers, gives back the last and then the first, and returns
// their page caches in the order in which they were lent, and that of the next.
func (s *Links) ReaderCaches() (caches []int64, next int64, err error) {
	size := func(c *conn) (n int64) {
		err = errors.Join(err, c.do(func(t *tx) (err error) {
			n, _, err = t.number(sqlCacheSize)
			return err
		}))
		return n
	}
	var lent []*conn
	for range s.config.Readers {
		<-s.readers.free
		lent = append(lent, s.readers.pop())
		caches = append(caches, size(lent[len(lent)-1]))
	}
	s.readers.push(lent[0])
	s.readers.push(lent[len(lent)-1])
	<-s.readers.free
	c := s.readers.pop()
	next = size(c)
	for _, c := range append(lent[1:len(lent)-1], c) {
		s.readers.push(c)
	}
	return caches, next, err
}

// Trim shortens the change log.
func (s *Links) Trim(ctx context.Context) error {
	return s.writer.write(ctx, 1, func(t *tx) error {
		last, _, err := t.number(sqlLastChange)
		if err != nil {
			return err
		}
		return s.trim(t, last)
	})
}
