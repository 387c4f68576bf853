package shorten

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
)

// Get returns a link that the caller sees. What is deleted, or another's, is
// link.ErrNotFound.
func (c *Creator) Get(ctx context.Context, who auth.Principal, k link.Key) (link.Link, error) {
	if err := auth.May(who, auth.ReadLink, auth.Resource{}); err != nil {
		return link.Link{}, err
	}
	return c.find(ctx, who, k)
}

// Free returns nil for a code that a create by the caller could have as its alias now,
// and otherwise what the create would answer: an InvalidError, ErrReserved or ErrTaken.
// Nothing is held for the caller: whoever creates first has it.
func (c *Creator) Free(ctx context.Context, who auth.Principal, domain link.Domain, alias string) error {
	if err := auth.May(who, auth.ChangeLink, auth.Resource{}); err != nil {
		return err
	}
	if err := CheckAlias(alias); err != nil {
		return err
	}
	k := link.Key{Domain: domain, Code: link.Code(alias)}
	_, err := c.store.Get(ctx, k)
	switch {
	case err == nil: // tombstones, too: an alias is never freed
		return ErrTaken
	case errors.Is(err, link.ErrNotFound):
		return nil
	}
	return fmt.Errorf("look for %s: %w", k, err)
}

// Exists returns nil for a link that the caller sees and may count the clicks of;
// otherwise the errors of Get.
func (c *Creator) Exists(ctx context.Context, who auth.Principal, k link.Key) error {
	if err := auth.May(who, auth.ReadStats, auth.Resource{}); err != nil {
		return err
	}
	_, err := c.find(ctx, who, k)
	return err
}

// Owner returns the workspace of a link that the caller sees and may do something to;
// otherwise the errors of Get.
func (c *Creator) Owner(ctx context.Context, who auth.Principal, a auth.Action, k link.Key) (link.WorkspaceID, error) {
	if err := auth.May(who, a, auth.Resource{}); err != nil {
		return "", err
	}
	l, err := c.find(ctx, who, k)
	return l.Workspace, err
}

func (c *Creator) find(ctx context.Context, who auth.Principal, k link.Key) (link.Link, error) {
	l, err := c.store.Get(ctx, k)
	if err != nil {
		return link.Link{}, fmt.Errorf("get %s: %w", k, err)
	}
	if !visible(who, l) {
		return link.Link{}, fmt.Errorf("get %s: %w", k, link.ErrNotFound)
	}
	return l, nil
}

// visible reports whether a link exists for the caller: tombstones do for nobody.
func visible(who auth.Principal, l link.Link) bool {
	return l.Status != link.Deleted && auth.May(who, auth.Ask, auth.In(l.Workspace)) == nil
}

// List returns a page of the links that the caller sees; f.Workspace is the
// caller's own, unless the caller is an admin, who sees all.
func (c *Creator) List(ctx context.Context, who auth.Principal, f link.Filter, p link.Page) (link.Slice, error) {
	if err := mayList(who); err != nil {
		return link.Slice{}, err
	}
	f.Workspace = auth.Within(who, f.Workspace)
	slice, err := c.store.List(ctx, f, p)
	if err != nil {
		return link.Slice{}, fmt.Errorf("list links: %w", err)
	}
	return slice, nil
}

// Update changes a link and returns it as stored, one version up; a change that
// asks for nothing leaves the version alone. ErrVersion when match refuses the
// version that is stored.
func (c *Creator) Update(ctx context.Context, now time.Time, who auth.Principal, k link.Key, match Match, change *Change) (link.Link, error) {
	now = now.UTC().Truncate(time.Millisecond)
	defer c.moderator.Enter()()
	r := &revision{who: who}
	return c.replace(ctx, who, k, match, func(l *link.Link) error {
		if change.empty() {
			return errUnchanged
		}
		before := *l
		if err := c.apply(now, l, &change.Fields); err != nil {
			return err
		}
		if change.Status.Given {
			if s := change.Status.Value; s != link.Active && s != link.Disabled {
				return invalid("status", "want active or disabled")
			}
			l.Status = change.Status.Value
		}
		if err := c.assessChange(ctx, now, &before, l, r); err != nil {
			return err
		}
		l.Updated = later(now, l.Updated)
		return nil
	})
}

// Delete leaves a tombstone: the content is erased, the code never used again.
func (c *Creator) Delete(ctx context.Context, now time.Time, who auth.Principal, k link.Key, match Match) error {
	now = now.UTC().Truncate(time.Millisecond)
	_, err := c.replace(ctx, who, k, match, func(l *link.Link) error {
		*l = l.Tombstone(later(now, l.Updated))
		return nil
	})
	if damaged, ok := errors.AsType[*link.DamagedError](err); ok {
		return c.discard(ctx, now, who, k, match, damaged, err)
	}
	return err
}

// discard deletes a link that cannot be read, for its owner, if that can be told, or else for
// admins. Nobody knows its version, so that who names one is refused with err.
func (c *Creator) discard(ctx context.Context, now time.Time, who auth.Principal, k link.Key, match Match, damaged *link.DamagedError, err error) error {
	store, can := c.store.(link.Discarder)
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
	c.announce(link.Change{Key: stored.Key, Version: stored.Version})
	return nil
}

// errUnchanged ends an update that has nothing to write.
var errUnchanged = errors.New("nothing to change")

// replace changes a link that the caller sees and announces the new version. Changes
// of one key take turns, so that of many at once the last wins and none loses.
func (c *Creator) replace(ctx context.Context, who auth.Principal, k link.Key, match Match, f func(*link.Link) error) (link.Link, error) {
	if err := auth.May(who, auth.ChangeLink, auth.Resource{}); err != nil {
		return link.Link{}, err
	}
	if who.IsAnonymous() { // may create, but owns nothing to change
		return link.Link{}, auth.ErrUnauthenticated
	}
	done, err := c.turns.wait(ctx, k)
	if err != nil {
		return link.Link{}, err
	}
	defer done()
	var seen link.Link
	stored, err := link.Update(ctx, c.store, k, func(l *link.Link) error {
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
	c.announce(link.Change{Key: stored.Key, Version: stored.Version})
	return stored, nil
}

// later keeps Updated from going back with the clock.
func later(now, before time.Time) time.Time {
	if now.Before(before) {
		return before
	}
	return now
}
