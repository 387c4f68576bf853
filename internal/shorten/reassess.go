package shorten

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
)

// revision is one change of a link on its way through the tries of link.Update.
type revision struct {
	who     auth.Caller
	entered link.Safety // the decision that it has written into the journal; 0 = none
	better  *judgement  // what the policy may say of the link once it is changed; nil = as before
}

// assessChange judges a change of before to after, about what it sets or brings back to
// life: a link whose destination was found bad later may still be changed in other
// respects. What is graver than the link's safety becomes its safety, and is written
// into the journal first.
func (c *Creator) assessChange(ctx context.Context, now time.Time, before, after *link.Link, r *revision) error {
	r.better = nil
	to := ofLink(after)
	if before.Status == after.Status || after.Status != link.Active { // it is not switched on
		if before.Destination == after.Destination {
			to.destination = ""
		}
		if before.Fallback == after.Fallback {
			to.fallback = ""
		}
	}
	if to == (where{}) {
		return nil
	}
	f := c.factsOf(r.who, after.Workspace)
	f.Change = true
	found, err := c.assess(ctx, now, f, to)
	if err != nil {
		return err
	}
	switch {
	case found.Safety > after.Safety:
		if r.entered != found.Safety { // once, however often others win
			if err := c.writeDown(ctx, now, &proposal{*after, found}); err != nil {
				return err
			}
			r.entered = found.Safety
			c.metrics.warned.Inc()
		}
		after.Safety = found.Safety
	case found.Safety < after.Safety:
		if all, err := c.assess(ctx, now, f, ofLink(after)); err == nil && all.Safety < after.Safety {
			r.better = &all
		}
	}
	return nil
}

// relieve takes the policy's own decision back when a link that is changed leads to
// better places. It comes behind the change: before it the link leads where it led. What
// a person decided stands, and so do bans.
func (c *Creator) relieve(ctx context.Context, now time.Time, l link.Link, r *revision) (link.Link, error) {
	if r.better == nil {
		return l, nil
	}
	stands, err := c.journal.Standing(ctx, l.ID)
	switch {
	case errors.Is(err, moderation.ErrNotFound):
		return l, nil
	case err != nil:
		return l, fmt.Errorf("%w: read the journal about %s: %w", link.ErrUnavailable, l.Key, err)
	case stands.Actor != moderation.ActorPolicy || stands.Safety <= r.better.Safety:
		return l, nil
	}
	if err := c.writeDown(ctx, now, &proposal{l, *r.better}); err != nil {
		return l, err
	}
	return c.moderator.Settle(ctx, now, l.Key)
}
