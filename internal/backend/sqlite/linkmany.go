package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"curt/internal/link"
)

// CreateMany implements link.Batcher: one transaction, whatever the number of links.
func (s *Links) CreateMany(ctx context.Context, now time.Time, entries []link.Creation) ([]link.Result, error) {
	s.ahead.readMany(ctx, s.closed, entries)
	results := make([]link.Result, len(entries))
	err := s.writer.write(ctx, len(entries), func(t *tx) error {
		for i := range entries {
			results[i] = s.createEntry(t, now, &entries[i])
			if err := results[i].Err; resultCode(err) != 0 {
				return err // nothing of the batch happened
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("create %d links: %w", len(entries), err)
	}
	return results, nil
}

func (s *Links) createEntry(t *tx, now time.Time, e *link.Creation) (r link.Result) {
	switch r.Err = e.Link.Validate(); {
	case r.Err != nil:
	case e.Dedupe:
		r.Link, r.Found, r.Err = s.findOrCreate(t, e.Link, now)
	default:
		r.Link, r.Err = s.create(t, e.Link)
	}
	return r
}

// FindSame implements link.Deduper.
func (s *Links) FindSame(ctx context.Context, wanted link.Link, now time.Time) (same link.Link, err error) {
	err = s.read(ctx, func(t *tx) error {
		workspace, found, err := t.number(sqlWorkspace, string(wanted.Workspace))
		if err == nil && found {
			same, found, err = findSame(t, workspace, wanted, now)
		}
		if err == nil && !found {
			return link.ErrNotFound
		}
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("find the same link: %w", err)
	}
	return same, nil
}

// FindOrCreate implements link.Deduper: the writer is alone, so that nobody creates
// between the look and the insert.
func (s *Links) FindOrCreate(ctx context.Context, l link.Link, now time.Time) (link.Link, bool, error) {
	if err := l.Validate(); err != nil {
		return link.Link{}, false, fmt.Errorf("find or create: %w", err)
	}
	var stored link.Link // no named result: a write that the caller left may still set it
	var found bool
	err := s.writer.write(ctx, 1, func(t *tx) (err error) {
		stored, found, err = s.findOrCreate(t, l, now)
		return err
	})
	if err != nil {
		return link.Link{}, false, fmt.Errorf("find or create %s: %w", l.Key, err)
	}
	return stored, found, nil
}

func (s *Links) findOrCreate(t *tx, l link.Link, now time.Time) (link.Link, bool, error) {
	workspace, err := s.workspace(t, l.Workspace)
	if err != nil {
		return link.Link{}, false, err
	}
	same, found, err := findSame(t, workspace, l, now)
	if err == nil && found && same.ID != l.ID {
		// A call that is repeated answers for its own link, whatever stands in by now.
		var again bool
		var own link.Link
		_, own, again, err = s.byKey(t, l.Key)
		found = !again || own.ID != l.ID
	}
	if err != nil || found && same.ID != l.ID {
		return same, found, err
	}
	stored, err := s.create(t, l)
	return stored, false, err
}

// errEnough ends a walk over rows that found what it was for.
var errEnough = errors.New("enough rows")

// findSame walks the links that may stand in for wanted, oldest first.
func findSame(t *tx, workspace int64, wanted link.Link, now time.Time) (same link.Link, found bool, err error) {
	err = t.each(sqlTwins, func(row []driver.Value) error {
		_, l, err := scanLink(row)
		if isDamaged(err) {
			return nil // it stands in for nobody
		}
		if err != nil {
			return err
		}
		if l.StandsInFor(wanted, now) {
			same, found = l, true
			return errEnough
		}
		return nil
	}, workspace, digest(wanted.Destination), millis(wanted.Expires), int64(link.MaxTwins))
	if errors.Is(err, errEnough) {
		err = nil
	}
	return same, found, err
}
