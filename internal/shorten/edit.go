package shorten

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
)

// Editor changes and deletes links. It is safe for many goroutines.
type Editor struct {
	// Set once in New.
	store    link.Store
	rules    *rules
	court    *court
	announce func(link.Change)
	turns    *turns
}

// Update changes a link and returns it as stored, one version up; a change that
// asks for nothing leaves the version alone. ErrVersion when match refuses the
// version that is stored.
func (s *Editor) Update(ctx context.Context, now time.Time, cause Cause, k link.Key, match Match, change *Change) (link.Link, error) {
	now = now.UTC().Truncate(time.Millisecond)
	defer s.court.moderator.Enter()()
	who := cause.Principal
	r := &revision{who: who}
	return s.replace(ctx, who, k, match, func(l *link.Link) error {
		if change.empty() {
			return errUnchanged
		}
		before := *l
		if err := s.rules.apply(now, l, &change.Fields); err != nil {
			return err
		}
		if change.Status.Given {
			if s := change.Status.Value; s != link.Active && s != link.Disabled {
				return invalid("status", "want active or disabled")
			}
			l.Status = change.Status.Value
		}
		if err := s.court.assessChange(ctx, now, &before, l, r); err != nil {
			return err
		}
		l.Updated = later(now, l.Updated)
		return nil
	})
}

// Delete leaves a tombstone: the content is erased, the code never used again.
func (s *Editor) Delete(ctx context.Context, now time.Time, cause Cause, k link.Key, match Match) error {
	now, who := now.UTC().Truncate(time.Millisecond), cause.Principal
	_, err := s.replace(ctx, who, k, match, func(l *link.Link) error {
		*l = l.Tombstone(later(now, l.Updated))
		return nil
	})
	if damaged, ok := errors.AsType[*link.DamagedError](err); ok {
		return s.discard(ctx, now, who, k, match, damaged, err)
	}
	return err
}

// discard deletes a link that cannot be read, for its owner, if that can be told, or else for
// admins. Nobody knows its version, so that who names one is refused with err.
func (s *Editor) discard(ctx context.Context, now time.Time, who auth.Principal, k link.Key, match Match, damaged *link.DamagedError, err error) error {
	store, can := s.store.(link.Discarder)
	switch {
	case !can || match.Only:
		return err
	case damaged.Workspace == "" && auth.May(who, auth.ChangeLink, auth.Everywhere()) != nil:
		return err
	case damaged.Workspace != "" && auth.May(who, auth.ChangeLink, auth.In(damaged.Workspace)) != nil:
		return fmt.Errorf("delete %s: %w", k, link.ErrNotFound)
	}
	stored, err := store.Discard(ctx, k, now)
	if err != nil {
		return fmt.Errorf("delete %s, which is damaged: %w", k, err)
	}
	s.announce(link.Change{Key: stored.Key, Version: stored.Version})
	return nil
}

// errUnchanged ends an update that has nothing to write.
var errUnchanged = errors.New("nothing to change")

// replace changes a link that the caller sees and announces the new version. Changes
// of one key take turns, so that of many at once the last wins and none loses.
func (s *Editor) replace(ctx context.Context, who auth.Principal, k link.Key, match Match, f func(*link.Link) error) (link.Link, error) {
	if err := auth.May(who, auth.ChangeLink, auth.Resource{}); err != nil {
		return link.Link{}, err
	}
	if who.IsAnonymous() { // may create, but owns nothing to change
		return link.Link{}, auth.ErrUnauthenticated
	}
	done, err := s.turns.wait(ctx, k)
	if err != nil {
		return link.Link{}, err
	}
	defer done()
	var seen link.Link
	stored, err := link.Update(ctx, s.store, k, who.KeyID, func(l *link.Link) error {
		if !visible(who, *l) {
			return link.ErrNotFound
		}
		if !match.accepts(l.Version) {
			return ErrVersion
		}
		seen = *l
		return f(l)
	})
	switch {
	case errors.Is(err, errUnchanged):
		return seen, nil
	case err != nil:
		return link.Link{}, fmt.Errorf("change %s: %w", k, err)
	}
	s.announce(link.Change{Key: stored.Key, Version: stored.Version})
	return stored, nil
}

// later keeps Updated from going back with the clock.
func later(now, before time.Time) time.Time {
	if now.Before(before) {
		return before
	}
	return now
}
