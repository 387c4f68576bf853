package create

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/shorten/judge"
)

// Aliases remembers what has an alias, so that a popular one costs no write for each who asks. reserve.Aliases explains
// the methods.
type Aliases interface {
	Refuse(now time.Time, w link.WorkspaceID, k link.Key) error
	Begin(ctx context.Context, now time.Time, w link.WorkspaceID, k link.Key) (done func(), err error)
	Found(now time.Time, w link.WorkspaceID, k link.Key, o link.Occupant)
}

// refuseKnown refuses the rows whose alias is known to be taken or held. A single row waits for another create of the same
// alias, until done is called. The store decides about a retry, whose link may be the one that has the alias, and about
// a row that may be given that link.
func (b *batch) refuseKnown(ctx context.Context) (done func(), err error) {
	done = func() {}
	if b.promise != nil && b.promise.retried {
		return done, nil
	}
	for _, r := range b.waiting() {
		switch {
		case !r.Request.Alias.Some() || r.Request.Dedupe.Value:
		case len(b.rows) > 1:
			r.Err = b.c.cfg.Aliases.Refuse(b.now, r.link.Workspace, r.link.Key)
		default:
			end, err := b.c.cfg.Aliases.Begin(ctx, b.now, r.link.Workspace, r.link.Key)
			switch {
			case err == nil:
				done = end
			case errors.Is(err, link.ErrExists):
				r.Err = err
			default:
				return nil, fmt.Errorf("create %s: %w: %w", r.link.Key, link.ErrUnavailable, err)
			}
		}
	}
	return done, nil
}

// occupant returns what has an alias that the store refused.
func occupant(refused error) link.Occupant {
	if held, ok := errors.AsType[*link.HeldError](refused); ok {
		return link.Occupant{Reservation: held.Reservation}
	}
	return link.Occupant{Linked: true}
}

// aliasFree reports whether a link that is not clean may have its alias: so that whoever asks
// for one that is taken, or that others hold, leaves nothing in the journal. Of a clean one the insert
// knows better.
func (c *Creator) aliasFree(ctx context.Context, p *judge.Proposal) (bool, error) {
	if !p.Unclean() {
		return true, nil
	}
	other, err := c.cfg.Store.Get(ctx, p.Key)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return c.unheld(ctx, p)
	case err != nil:
		return false, fmt.Errorf("get %s: %w", p.Key, err)
	}
	return other.ID == p.ID, nil
}

// unheld reports whether no other workspace holds the alias of a link.
func (c *Creator) unheld(ctx context.Context, p *judge.Proposal) (bool, error) {
	if c.reserver == nil {
		return true, nil
	}
	found, err := c.reserver.Occupants(ctx, []link.Key{p.Key})
	if err != nil {
		return false, fmt.Errorf("find %s: %w", p.Key, err)
	}
	return !found[0].Held() || found[0].Reservation.Workspace == p.Workspace, nil
}

// onAliasTaken answers for an alias that another workspace holds, or another link has: to who asks to
// dedupe, with that link, where it is what they want.
func (c *Creator) onAliasTaken(ctx context.Context, now time.Time, l link.Link, req *shorten.Request, taken error) (shorten.Result, error) {
	if held, ok := errors.AsType[*link.HeldError](taken); ok {
		return shorten.Result{}, held
	}
	if !req.Dedupe.Value {
		return shorten.Result{}, shorten.ErrTaken
	}
	other, err := c.cfg.Store.Get(ctx, l.Key)
	switch {
	case err != nil:
		return shorten.Result{}, fmt.Errorf("get %s: %w", l.Key, err)
	case !other.Equivalent(l, now):
		return shorten.Result{}, shorten.ErrTaken
	}
	return shorten.Result{Link: other, Found: true}, nil
}
