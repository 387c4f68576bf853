package review

import (
	"context"
	"errors"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Changed has the open cases of links looked at: a link may belong to another workspace by now. No
// links = nobody knows which changed. It never waits; Run does the work.
func (fl *Follower) Changed(keys ...link.Key) { fl.changed.Add(keys...) }

// moves has open cases follow their links to other workspaces.
func (fl *Follower) moves(ctx context.Context) error {
	keys, all := fl.changed.Take()
	if all {
		return fl.again(fl.moveAll(ctx), nil)
	}
	for i, k := range keys {
		if err := fl.move(ctx, k); err != nil {
			return fl.again(err, keys[i:])
		}
	}
	return nil
}

// again keeps what an error left undone.
func (fl *Follower) again(err error, keys []link.Key) error {
	if err != nil {
		fl.changed.Add(keys...)
	}
	return err
}

// moveAll looks at every open case.
func (fl *Follower) moveAll(ctx context.Context) error {
	page := moderation.CasePage{Limit: moderation.MaxCasePage}
	for {
		cases, next, err := fl.cases.List(ctx, moderation.CaseFilter{Order: moderation.ByNewest}, page)
		if err != nil {
			return err
		}
		for i := range cases {
			if cases[i].Link.IsDestination() {
				continue
			}
			if err := fl.move(ctx, cases[i].Link.Key); err != nil {
				return err
			}
		}
		if page.After = next; next == (moderation.CasePosition{}) {
			return nil
		}
	}
}

func (fl *Follower) move(ctx context.Context, k link.Key) error {
	l, err := fl.links.Get(ctx, k)
	if _, damaged := errors.AsType[*link.DamagedError](err); damaged || link.Absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := fl.cases.Case(ctx, l.ID)
	switch {
	case errors.Is(err, moderation.ErrNoCase):
		return nil
	case err != nil || !c.Closed.IsZero() || c.Workspace == l.Workspace:
		return err
	}
	return fl.cases.Move(ctx, l.ID, l.Workspace)
}
