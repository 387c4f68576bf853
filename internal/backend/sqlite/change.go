package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
	"time"

	"curt/internal/backend/sqlite/linkrow"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

// Replace implements link.Store.
func (s *Links) Replace(ctx context.Context, l link.Link, e link.Edit) (link.Link, error) {
	if err := l.Validate(); err != nil {
		return link.Link{}, fmt.Errorf("replace: %w", err)
	}
	var stored link.Link
	err := s.db.Write(ctx, 1, func(t *sqlitedb.Tx) (err error) {
		stored, err = s.replace(t, l, &e)
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("replace %s: %w", l.Key, err)
	}
	return stored, nil
}

const sqlUpdateLink = `UPDATE links SET (` + linkrow.ChangingColumns + `) = (` + linkrow.ChangingMarks + `) WHERE n = ?`

func (s *Links) replace(t *sqlitedb.Tx, l link.Link, e *link.Edit) (link.Link, error) {
	n, old, found, err := s.byKey(t, l.Key)
	switch {
	case err != nil:
		return link.Link{}, err
	case !found:
		return link.Link{}, link.ErrNotFound
	case old.Status == link.Deleted:
		return link.Link{}, fmt.Errorf("deleted: %w", link.ErrConflict)
	case old.Version != l.Version:
		return link.Link{}, fmt.Errorf("stored version is %d: %w", old.Version, link.ErrConflict)
	}
	l.ID, l.CodeKind, l.Created, l.Spent = old.ID, old.CodeKind, old.Created, old.Spent
	l.Version++
	l = l.Normal()
	if l.Workspace != old.Workspace {
		if err := s.move(t, n, &l); err != nil {
			return link.Link{}, err
		}
	}
	args, err := linkrow.Args(n, 0, &l, true)
	if err == nil {
		_, err = t.Exec(sqlUpdateLink, args...)
	}
	if err != nil {
		return link.Link{}, err
	}
	return l, s.logWrite(t, &l, link.WasUpdated, e)
}

// A move to another workspace. Others than it leave the index by age alone.
const sqlMoveLink = `UPDATE links SET workspace = ?, origin = ? WHERE n = ?`

// move gives the row of l to its workspace.
func (s *Links) move(t *sqlitedb.Tx, n int64, l *link.Link) error {
	workspace, err := s.workspace(t, l.Workspace)
	if err == nil {
		err = idFree(t, workspace, l)
	}
	if err == nil {
		_, err = t.Exec(sqlMoveLink, workspace, linkrow.Origin(l), n)
	}
	return err
}

// Spend implements link.Spender. Links without a bound and exhausted ones are
// answered by a read.
func (s *Links) Spend(ctx context.Context, k link.Key, n uint64) (uint64, error) {
	var granted uint64
	decided := false
	err := s.db.Read(ctx, func(t *sqlitedb.Tx) (err error) {
		_, granted, decided, err = s.spendable(t, k, n)
		return err
	})
	if err == nil && !decided {
		err = s.db.Write(ctx, 1, func(t *sqlitedb.Tx) (err error) {
			granted, err = s.spend(t, k, n)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("spend %d clicks of %s: %w", n, k, err)
	}
	return granted, nil
}

// row is a link and where it lies.
type row struct {
	n    int64
	link link.Link
}

const sqlUpdateSpent = `UPDATE links SET spent = ?, whole = ? WHERE n = ?`

func (s *Links) spend(t *sqlitedb.Tx, k link.Key, n uint64) (uint64, error) {
	at, granted, decided, err := s.spendable(t, k, n)
	if err != nil || decided {
		return granted, err
	}
	at.link.Spent += granted
	_, err = t.Exec(sqlUpdateSpent, int64(at.link.Spent), linkrow.Whole(at.n, &at.link), at.n)
	return granted, err
}

// Discard implements link.Discarder.
func (s *Links) Discard(ctx context.Context, k link.Key, now time.Time) (link.Link, error) {
	var stored link.Link // no named result: a write that the caller left may still set it
	err := s.db.Write(ctx, 1, func(t *sqlitedb.Tx) (err error) {
		stored, err = s.discard(t, k, now)
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("discard %s: %w", k, err)
	}
	s.damages.gone(k)
	return stored, nil
}

// Every column of a damaged row but its key, of which it may have none.
const sqlDiscardLink = `UPDATE links SET (` + linkrow.StoredColumns + `) = (` + linkrow.StoredMarks + `) WHERE n = ?`

func (s *Links) discard(t *sqlitedb.Tx, k link.Key, now time.Time) (link.Link, error) {
	n, broken := int64(0), []driver.Value(nil)
	found, err := s.find(t, k, linkrow.SelectRow, func(row []driver.Value) (bool, error) {
		at, l, err := linkrow.Scan(row)
		if linkrow.IsDamaged(err) {
			n, broken = at, append(broken[:0], row...) // of two the alias leads to the second
		}
		return err == nil && l.Key == k, err
	})
	switch {
	case found:
		return link.Link{}, fmt.Errorf("it is intact: %w", link.ErrConflict)
	case err == nil:
		return link.Link{}, link.ErrNotFound
	case !linkrow.IsDamaged(err) || broken == nil:
		return link.Link{}, err // no row of its own could be found
	}
	l := remains(k, broken).Tombstone(now)
	workspace, err := s.workspace(t, l.Workspace)
	if err != nil {
		return link.Link{}, err
	}
	args, err := linkrow.Args(n, workspace, &l, false)
	if err == nil {
		_, err = t.Exec(sqlDiscardLink, args...)
	}
	if err != nil {
		return link.Link{}, err
	}
	return l, s.logWrite(t, &l, link.WasDeleted, new(link.Edit))
}

// remains is what a damaged row tells of its link for sure, and what must stand in for the
// rest: an id that follows from the key, and the workspace of the operator.
func remains(k link.Key, row []driver.Value) link.Link {
	_, l, state := linkrow.Read(row)
	if !state.Owned || l.Key != k {
		l.Workspace, l.Created = link.WorkspaceDefault, time.Time{}
		sum := sha256.Sum256([]byte(k.String()))
		copy(l.ID[:], sum[:])
	}
	l.Key = k
	if !state.Serves {
		// No link was changed that often: what caches hold is older, and a version that may be
		// damaged itself is not believed beyond.
		const never = 1 << 30
		l.Version = max(l.Version%never, never-1) + 1
		l.Safety, l.Redirect = link.Clean, 302
	}
	l.Version++
	return l
}

// spendable says what a Spend would grant; decided means that nothing must be
// written for it.
func (s *linkReader) spendable(t *sqlitedb.Tx, k link.Key, n uint64) (at row, granted uint64, decided bool, err error) {
	at.n, at.link, decided, err = s.byKey(t, k)
	if err != nil {
		return at, 0, false, err
	}
	l := at.link
	switch {
	case !decided || l.Status == link.Deleted:
		return at, 0, false, link.ErrNotFound
	case l.MaxClicks == 0 || n == 0:
		return at, n, true, nil
	case l.Spent >= l.MaxClicks:
		return at, 0, true, nil
	}
	return at, min(n, l.MaxClicks-l.Spent), false, nil
}
