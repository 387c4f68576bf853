package review

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/moderation"
)

const (
	// followEvery is how much later than its decision a case is in the queue, where
	// nobody says that there is one.
	followEvery = time.Second
	// followStep is how many entries are taken in one write.
	followStep = 200

	// written is how long a change may take from its entry in the journal to the link:
	// then the link is believed as it is.
	written = 10 * time.Second
	// abandoned is when a link that is still not there was never made: its alias was
	// taken, or its maker died. No request lasts as long.
	abandoned = 10 * time.Minute

	forgetEvery = time.Hour
	forgetStep  = 500
	countEvery  = 5 * time.Second
	sweepEvery  = time.Minute
	// sweepPages bounds one sweep: what is due first comes first, and reading a link takes
	// some 50 µs.
	sweepPages = 20
)

// kick says that the journal has grown.
func (d *Desk) kick() {
	select {
	case d.kicked <- struct{}{}:
	default: // it was said already
	}
}

// Run follows the journal, and erases what strangers wrote when its time is over, until
// ctx ends. What fails is tried again at the next turn.
func (d *Desk) Run(ctx context.Context) error {
	turns := time.NewTicker(followEvery)
	defer turns.Stop()
	var counted, swept, forgotten time.Time
	for {
		now := d.config.Now()
		err := errors.Join(d.follow(ctx), d.settle(ctx, now), d.moves(ctx))
		if now.Sub(swept) >= sweepEvery || now.Before(swept) {
			swept = now
			err = errors.Join(err, d.sweep(ctx, now))
		}
		if now.Sub(counted) >= countEvery || now.Before(counted) {
			counted = now
			err = errors.Join(err, d.count(ctx, now))
		}
		if now.Sub(forgotten) >= forgetEvery || now.Before(forgotten) {
			forgotten = now
			err = errors.Join(err, d.forget(ctx, now))
		}
		if err != nil && ctx.Err() == nil {
			if again, due := d.behind.Met(now); due {
				d.config.Log.LogAttrs(ctx, slog.LevelWarn, "the review queue is behind", slog.Any("err", err), again)
			}
		} else if sum, due := d.behind.Over(now); due {
			d.config.Log.LogAttrs(ctx, slog.LevelInfo, "the review queue is no longer behind", sum)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-turns.C:
		case <-d.kicked:
		}
	}
}

// follow brings what the journal says into the cases, as far as it goes.
func (d *Desk) follow(ctx context.Context) error {
	var after uint64
	follower := feed.Follower[uint64, moderation.Entry]{
		Name: "review queue", Page: followStep, Log: moderation.LogOf(d.config.Journal),
		Position: func(ctx context.Context) (_ uint64, _ bool, err error) {
			after, err = d.config.Cases.Position(ctx)
			return after, true, err
		},
		Apply: func(ctx context.Context, entries []moderation.Entry, to uint64) error {
			return d.apply(ctx, entries, after, to)
		},
	}
	if err := follower.CatchUp(ctx); !errors.Is(err, link.ErrConflict) {
		return err
	}
	return nil // another process does it
}

func (d *Desk) apply(ctx context.Context, entries []moderation.Entry, after, to uint64) error {
	var steps []moderation.Step
	for i := range entries {
		step, err := d.step(ctx, &entries[i])
		if err != nil {
			return err
		}
		if step != (moderation.Step{}) {
			steps = append(steps, step)
		}
	}
	closed, err := d.config.Cases.Follow(ctx, after, to, steps)
	for i := range closed {
		d.metrics.decided(&closed[i])
	}
	return err
}

// step is what an entry does to the queue: nothing, mostly. What the policy found
// nothing wrong with is no case.
func (d *Desk) step(ctx context.Context, e *moderation.Entry) (s moderation.Step, err error) {
	k, ok := e.Entity.Key()
	if !ok || e.Action != moderation.ActionDecide && e.Action != moderation.ActionAnswer {
		return s, nil
	}
	r := moderation.Ref{Key: k, ID: e.Link}
	if e.Actor != moderation.ActorPolicy {
		c := closing(e, r)
		s.Close = &c
		return s, nil
	}
	if e.Safety == link.Clean {
		return s, nil
	}
	o := moderation.Opening{Link: r, Source: moderation.FromPolicy, Sequence: e.Sequence, Score: e.Score, At: e.At, Due: e.At.Add(d.config.Due)}
	if o.ID, err = d.ids.New(e.At); err != nil {
		return s, err
	}
	o.Facts, err = d.facts(ctx, r, e.At, e.At)
	s.Open = &o
	return s, err
}

// facts returns those of a link that something was decided about; zero while the link
// may not have been written since.
func (d *Desk) facts(ctx context.Context, r moderation.Ref, decided, now time.Time) (f moderation.Facts, err error) {
	l, err := d.config.Links.Get(ctx, r.Key)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return f, nil
	case err != nil:
		return f, fmt.Errorf("get %s: %w", r.Key, err)
	case l.ID != r.ID || l.Updated.Before(decided) && now.Sub(decided) < written:
		return f, nil
	}
	return factsOf(&l), nil
}

// settle looks again for the links of cases that wait for theirs.
func (d *Desk) settle(ctx context.Context, now time.Time) error {
	pending, err := d.config.Cases.Pending(ctx, followStep)
	if err != nil {
		return err
	}
	for i := range pending {
		c := &pending[i]
		f, err := d.facts(ctx, c.Link, c.Opened, now)
		if err != nil {
			return err
		}
		if f == (moderation.Facts{}) && now.Sub(c.Opened) < abandoned {
			continue
		}
		if err := d.config.Cases.Describe(ctx, c.ID, f); err != nil {
			return err
		}
	}
	return nil
}

// count keeps what the metrics show.
func (d *Desk) count(ctx context.Context, now time.Time) error {
	open, overdue, err := d.config.Cases.Count(ctx, now)
	if err != nil {
		return err
	}
	d.metrics.open.Set(float64(open))
	d.metrics.overdue.Set(float64(overdue))
	d.waiting.Store(int64(open))
	d.overdue.Store(int64(overdue))
	return nil
}

// sweep closes the cases of links that are gone: nothing on the journal says that an owner
// deleted one, and nobody can decide about it any more.
func (d *Desk) sweep(ctx context.Context, now time.Time) error {
	var p moderation.CasePage
	for range sweepPages {
		p.Limit = moderation.MaxCasePage
		cases, next, err := d.config.Cases.List(ctx, moderation.CaseFilter{}, p)
		if err != nil {
			return err
		}
		for i := range cases {
			if err := d.closeIfGone(ctx, now, &cases[i]); err != nil {
				return err
			}
		}
		if p.After = next; next == (moderation.CasePosition{}) {
			return nil
		}
	}
	return nil
}

// closeIfGone closes an open case whose link was deleted. What earlier entries of the
// journal still say of it joins the closed case.
func (d *Desk) closeIfGone(ctx context.Context, now time.Time, c *moderation.Case) error {
	l, err := d.config.Links.Get(ctx, c.Link.Key)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return nil // not yet written; settle drops what never is
	case err != nil:
		return fmt.Errorf("get %s: %w", c.Link.Key, err)
	case l.ID != c.Link.ID || l.Status != link.Deleted:
		return nil
	}
	_, err = d.config.Cases.Close(ctx, moderation.Closing{
		Link: c.Link, Sequence: math.MaxInt64, At: now, By: moderation.ActorOwner, Safety: l.Safety,
	})
	if errors.Is(err, moderation.ErrNoCase) {
		return nil // a moderator was faster
	}
	return err
}

// forget erases what was written about cases that were closed long ago.
func (d *Desk) forget(ctx context.Context, now time.Time) error {
	for {
		n, err := d.config.Cases.Forget(ctx, now.Add(-d.config.Retention), forgetStep)
		if err != nil || n < forgetStep {
			return err
		}
	}
}
