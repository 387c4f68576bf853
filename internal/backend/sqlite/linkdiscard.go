package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
	"time"

	"curt/internal/link"
)

var _ link.Discarder = (*Links)(nil)

// Discard implements link.Discarder.
func (s *Links) Discard(ctx context.Context, k link.Key, now time.Time) (link.Link, error) {
	var stored link.Link // no named result: a write that the caller left may still set it
	err := s.writer.write(ctx, 1, func(t *tx) (err error) {
		stored, err = s.discard(t, k, now)
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("discard %s: %w", k, err)
	}
	s.damages.gone(k)
	return stored, nil
}

func (s *Links) discard(t *tx, k link.Key, now time.Time) (link.Link, error) {
	n, broken := int64(0), []driver.Value(nil)
	found, err := s.find(t, k, sqlLinkAt, func(row []driver.Value) (bool, error) {
		at, l, err := scanLink(row)
		if isDamaged(err) {
			n, broken = at, append(broken[:0], row...) // of two the alias leads to the second
		}
		return err == nil && l.Key == k, err
	})
	switch {
	case found:
		return link.Link{}, fmt.Errorf("it is whole: %w", link.ErrConflict)
	case err == nil:
		return link.Link{}, link.ErrNotFound
	case !isDamaged(err) || broken == nil:
		return link.Link{}, err // no row of its own could be found
	}
	l := remains(k, broken).Tombstone(now)
	workspace, err := s.workspace(t, l.Workspace)
	if err != nil {
		return link.Link{}, err
	}
	args, err := rowOf(n, workspace, &l, false)
	if err == nil {
		_, err = t.exec(sqlDiscardLink, args...)
	}
	if err != nil {
		return link.Link{}, err
	}
	return l, s.logWrite(t, &l, link.WasDeleted, new(link.Edit))
}

// remains is what a damaged row tells of its link for sure, and what must stand in for the
// rest: an id that follows from the key, and the workspace of the operator.
func remains(k link.Key, row []driver.Value) link.Link {
	_, l, state := readLink(row)
	if !state.owned || l.Key != k {
		l.Workspace, l.Created = link.WorkspaceDefault, time.Time{}
		sum := sha256.Sum256([]byte(k.String()))
		copy(l.ID[:], sum[:])
	}
	l.Key = k
	if !state.serves {
		// No link was changed that often: what caches hold is older, and a version that may be
		// damaged itself is not believed beyond.
		const never = 1 << 30
		l.Version = max(l.Version%never, never-1) + 1
		l.Safety, l.Redirect = link.Clean, 302
	}
	l.Version++
	return l
}
