package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"

	"curt/internal/link"
)

// Create implements link.Store.
func (s *Links) Create(ctx context.Context, l link.Link) (link.Link, error) {
	if err := l.Validate(); err != nil {
		return link.Link{}, fmt.Errorf("create: %w", err)
	}
	s.ahead.read(ctx, s.closed, &l)
	var stored link.Link
	err := s.writer.write(ctx, 1, func(t *tx) (err error) {
		stored, err = s.create(t, l)
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("create %s: %w", l.Key, err)
	}
	return stored, nil
}

// create inserts l, or says what it met.
func (s *Links) create(t *tx, l link.Link) (link.Link, error) {
	l.Version, l.Spent = 1, 0
	l = normal(l)
	workspace, err := s.workspace(t, l.Workspace)
	if err != nil {
		return link.Link{}, err
	}
	if n, ok := s.place(l.Key.Code); ok && l.CodeKind != link.Chosen {
		if changed, err := insert(t, n, workspace, &l); err != nil || changed == 1 {
			s.note(l.ID)
			if changed == 1 {
				s.counted = append(s.counted, n)
			}
			return l, err
		}
	}
	l, _, err = s.createAlias(t, workspace, l)
	return l, err
}

// createAlias is create for a code that does not lie at a permuted place, or whose
// place is taken: by itself, by another link, or by another domain's. known says that
// the link was there already. Most links are new: nobody is asked what stands in the way
// before something does.
func (s *Links) createAlias(t *tx, workspace int64, l link.Link) (stored link.Link, known bool, err error) {
	inserted, err := s.insertAlias(t, workspace, &l)
	switch {
	case err != nil:
		return link.Link{}, false, err
	case !inserted:
		return s.met(t, workspace, &l)
	}
	s.note(l.ID)
	if l.CodeKind != link.Chosen {
		s.counted = append(s.counted, s.lastAlias)
		return l, false, nil
	}
	return l, false, s.logWrite(t, &l, link.WasCreated, &link.Edit{Principal: l.CreatedBy})
}

// insertAlias inserts l behind the other aliases, unless its key or its id is taken.
func (s *Links) insertAlias(t *tx, workspace int64, l *link.Link) (inserted bool, err error) {
	if n, ok := s.place(l.Key.Code); ok {
		taken, err := t.one(sqlPlaceTaken, ignore, n)
		if err == nil && taken {
			_, _, taken, err = s.byKey(t, l.Key)
		}
		if err != nil || taken {
			return false, err
		}
	}
	// A damaged entry may hide the key from the statement below.
	switch _, hidden, sound, err := aliasRow(t, l.Key); {
	case err != nil || hidden:
		return false, err
	case !sound:
		if err := s.mendAliases(t); err != nil {
			return false, err
		}
	}
	changed, last := int64(0), s.lastAlias
	if last != 0 {
		changed, err = insert(t, last+1, workspace, l)
	}
	if err == nil && changed == 0 { // perhaps for the row, which another process took
		if last, _, err = t.number(sqlLastAlias); err == nil && last != s.lastAlias {
			changed, err = insert(t, last+1, workspace, l)
		}
	}
	if err != nil || changed == 0 {
		return false, err
	}
	s.lastAlias = last + 1
	_, err = t.exec(sqlInsertAlias, string(l.Key.Domain), string(l.Key.Code), s.lastAlias)
	return true, err
}

// insert inserts the row n, unless it, the id or the key is taken.
func insert(t *tx, n, workspace int64, l *link.Link) (changed int64, err error) {
	args, err := rowOf(n, workspace, l, false)
	if err != nil {
		return 0, err
	}
	return t.exec(sqlInsertLink, append(args, string(l.Key.Domain), string(l.Key.Code))...)
}

// met says what kept l from being inserted: itself, another link of its key, or another key of
// its id.
func (s *Links) met(t *tx, workspace int64, l *link.Link) (stored link.Link, known bool, err error) {
	_, stored, taken, err := s.byKey(t, l.Key)
	switch {
	case err != nil:
		return link.Link{}, false, err
	case taken && stored.ID == l.ID:
		return stored, true, nil
	case taken:
		return link.Link{}, false, link.ErrExists
	}
	if err := idFree(t, workspace, l); err != nil {
		return link.Link{}, false, err
	}
	return link.Link{}, false, fmt.Errorf("%s cannot be inserted, and nothing is in its way: %w: %w", l.Key, link.ErrUnavailable, ErrCorrupt)
}

// idFree returns link.ErrConflict when the id of l is that of another key in a workspace.
func idFree(t *tx, workspace int64, l *link.Link) error {
	var other link.Link
	known, err := t.one(sqlLinkByID, func(row []driver.Value) error {
		_, stored, err := scanLink(row)
		other = stored
		return err
	}, workspace, l.ID[:])
	if err == nil && known && other.Key != l.Key {
		err = fmt.Errorf("id belongs to %s: %w", other.Key, link.ErrConflict)
	}
	return err
}

// workspace returns the number of a workspace, which it makes when it is new.
func (s *Links) workspace(t *tx, name link.WorkspaceID) (int64, error) {
	if n, ok := s.workspaces[name]; ok {
		return n, nil
	}
	n, found, err := t.number(sqlWorkspace, string(name))
	if err == nil && !found {
		n, err = t.insert(sqlInsertWorkspace, string(name))
	}
	if err != nil {
		return 0, err
	}
	s.workspaces[name] = n
	return n, nil
}

// Replace implements link.Store.
func (s *Links) Replace(ctx context.Context, l link.Link, e link.Edit) (link.Link, error) {
	if err := l.Validate(); err != nil {
		return link.Link{}, fmt.Errorf("replace: %w", err)
	}
	var stored link.Link
	err := s.writer.write(ctx, 1, func(t *tx) (err error) {
		stored, err = s.replace(t, l, &e)
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("replace %s: %w", l.Key, err)
	}
	return stored, nil
}

func (s *Links) replace(t *tx, l link.Link, e *link.Edit) (link.Link, error) {
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
	l = normal(l)
	if l.Workspace != old.Workspace {
		if err := s.move(t, n, &l); err != nil {
			return link.Link{}, err
		}
	}
	args, err := rowOf(n, 0, &l, true)
	if err == nil {
		_, err = t.exec(sqlUpdateLink, args...)
	}
	if err != nil {
		return link.Link{}, err
	}
	return l, s.logWrite(t, &l, link.WasUpdated, e)
}

// move gives the row of l to its workspace.
func (s *Links) move(t *tx, n int64, l *link.Link) error {
	workspace, err := s.workspace(t, l.Workspace)
	if err == nil {
		err = idFree(t, workspace, l)
	}
	if err == nil {
		_, err = t.exec(sqlMoveLink, workspace, origin(l), n)
	}
	return err
}

// normal returns l as a later Get will: of a deleted link what its tombstone keeps,
// and nil for no tags.
func normal(l link.Link) link.Link {
	if l.Status == link.Deleted {
		return l.Tombstone(l.Updated)
	}
	if len(l.Tags) == 0 {
		l.Tags = nil
	}
	return l
}

// Spend implements link.Spender. Links without a bound and exhausted ones are
// answered by a read.
func (s *Links) Spend(ctx context.Context, k link.Key, n uint64) (uint64, error) {
	var granted uint64
	decided := false
	err := s.read(ctx, func(t *tx) (err error) {
		_, granted, decided, err = s.spendable(t, k, n)
		return err
	})
	if err == nil && !decided {
		err = s.writer.write(ctx, 1, func(t *tx) (err error) {
			granted, err = s.spend(t, k, n)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("spend %d clicks of %s: %w", n, k, err)
	}
	return granted, nil
}

// spendable says what a Spend would grant; decided means that nothing must be
// written for it.
func (s *Links) spendable(t *tx, k link.Key, n uint64) (at row, granted uint64, decided bool, err error) {
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

// row is a link and where it lies.
type row struct {
	n    int64
	link link.Link
}

func (s *Links) spend(t *tx, k link.Key, n uint64) (uint64, error) {
	at, granted, decided, err := s.spendable(t, k, n)
	if err != nil || decided {
		return granted, err
	}
	at.link.Spent += granted
	_, err = t.exec(sqlUpdateSpent, int64(at.link.Spent), whole(at.n, &at.link), at.n)
	return granted, err
}

// Lease implements codegen.Leaser.
func (s *Links) Lease(ctx context.Context, counter string, n uint64) (uint64, error) {
	var first uint64
	err := s.writer.write(ctx, 1, func(t *tx) error {
		next, _, err := t.number(sqlLeased, counter)
		if err != nil {
			return err
		}
		if n == 0 || n > math.MaxInt64-uint64(next) {
			return fmt.Errorf("%d ids from %d: %w", n, next, link.ErrInvalid)
		}
		first = uint64(next)
		if _, err = t.exec(sqlLease, counter, next+int64(n)); err == nil {
			_, err = t.exec(sqlLeaseCreates, counter, next+int64(n))
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("lease from %s: %w", counter, err)
	}
	if err := s.keepLease(counter, first+n); err != nil {
		return 0, err
	}
	return first, nil
}

// Leased implements codegen.Leaser.
func (s *Links) Leased(ctx context.Context, counter string) (uint64, error) {
	var next int64
	err := s.read(ctx, func(t *tx) (err error) {
		next, _, err = t.number(sqlLeased, counter)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the mark of %s: %w", counter, err)
	}
	return uint64(next), nil
}

// Skip implements codegen.Leaser.
func (s *Links) Skip(ctx context.Context, counter string, n uint64) error {
	_, err := s.Lease(ctx, counter, n)
	return err
}
