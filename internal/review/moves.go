package review

import (
	"context"
	"errors"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Changed has the open cases of links looked at: a link may belong to another workspace by now. No
// links = nobody knows which changed. It never waits; Run does the work.
func (d *Desk) Changed(keys ...link.Key) { d.changed.Add(keys...) }

// moves has open cases follow their links to other workspaces.
func (d *Desk) moves(ctx context.Context) error {
	keys, all := d.changed.Take()
	if all {
		return d.again(d.moveAll(ctx), nil)
	}
	for i, k := range keys {
		if err := d.move(ctx, k); err != nil {
			return d.again(err, keys[i:])
		}
	}
	return nil
}

// again keeps what an error left undone.
func (d *Desk) again(err error, keys []link.Key) error {
	if err != nil {
		d.changed.Add(keys...)
	}
	return err
}

// moveAll looks at every open case.
func (d *Desk) moveAll(ctx context.Context) error {
	page := moderation.CasePage{Limit: moderation.MaxCasePage}
	for {
		cases, next, err := d.config.Cases.List(ctx, moderation.CaseFilter{Order: moderation.ByNewest}, page)
		if err != nil {
			return err
		}
		for i := range cases {
			if err := d.move(ctx, cases[i].Link.Key); err != nil {
				return err
			}
		}
		if page.After = next; next == (moderation.CasePosition{}) {
			return nil
		}
	}
}

func (d *Desk) move(ctx context.Context, k link.Key) error {
	l, err := d.config.Links.Get(ctx, k)
	if _, damaged := errors.AsType[*link.DamagedError](err); damaged || link.Absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := d.config.Cases.Case(ctx, l.ID)
	switch {
	case errors.Is(err, moderation.ErrNoCase):
		return nil
	case err != nil || !c.Closed.IsZero() || c.Workspace == l.Workspace:
		return err
	}
	return d.config.Cases.Move(ctx, l.ID, l.Workspace)
}
