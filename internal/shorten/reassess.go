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
	who     auth.Principal
	entered link.Safety // the decision that it has written into the journal; 0 = none
}

// assessChange judges a change of before to after, about what it sets or brings back to
// life: a link whose destination was found bad later may still be changed in other
// respects. What is graver than the link's safety becomes its safety, and is written
// into the journal first. What is milder changes nothing: a link is stopped for more than
// the URL that it has now, as for what was reported, and its owner is not who ends that.
func (c *court) assessChange(ctx context.Context, now time.Time, before, after *link.Link, r *revision) error {
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
	if found.Safety <= after.Safety {
		return nil
	}
	if r.entered != found.Safety { // once, however often others win
		if stands, err := c.decided(ctx, after); err != nil {
			return err
		} else if stands.Safety > found.Safety { // and is about to be the link's
			after.Safety = stands.Safety
			return nil
		}
		if err := c.writeDown(ctx, now, &proposal{*after, found}); err != nil {
			return err
		}
		r.entered = found.Safety
		c.metrics.warned.Inc()
	}
	after.Safety = found.Safety
	return nil
}

// decided returns what was decided about a link, the zero Entry where nothing was.
func (c *court) decided(ctx context.Context, l *link.Link) (moderation.Entry, error) {
	stands, err := c.journal.Standing(ctx, l.ID)
	switch {
	case errors.Is(err, moderation.ErrNotFound):
		return moderation.Entry{}, nil
	case err != nil:
		return stands, fmt.Errorf("%w: read the journal about %s: %w", link.ErrUnavailable, l.Key, err)
	}
	return stands, nil
}
