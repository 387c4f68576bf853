package review

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/repeatlog"
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
	// DefaultWrittenWithin is when a link that is still not there was never made: its alias was
	// taken, or its maker died. No request lasts as long.
	DefaultWrittenWithin = 10 * time.Minute

	forgetEvery = time.Hour
	forgetStep  = 500
	countEvery  = 5 * time.Second
	sweepEvery  = time.Minute
	// sweepPages bounds one sweep: what is due first comes first, and reading a link takes
	// some 50 µs.
	sweepPages = 20
)

// Follower brings the journal into the queue, and cleans up there.
type Follower struct {
	cases   moderation.Cases
	journal Journal
	links   Links

	opener    opener
	within    time.Duration // of [Config]
	retention time.Duration
	metrics   *metrics
	log       *slog.Logger
	now       func() time.Time // of Run

	kicked  chan struct{} // capacity 1: the journal has grown
	changed link.ChangedSet
	behind  repeatlog.Condition

	settled link.ID // the case that settle came to; owned by Run

	waiting, overdue atomic.Int64 // cases, as counted last
}

// Waiting returns how many cases are open, and how many of them have waited too long, as
// Run counted them last, at most some seconds ago.
func (fl *Follower) Waiting() (open, overdue int) {
	return int(fl.waiting.Load()), int(fl.overdue.Load())
}

// kick says that the journal has grown.
func (fl *Follower) kick() {
	select {
	case fl.kicked <- struct{}{}:
	default: // it was said already
	}
}

// Run follows the journal, and erases what strangers wrote when its time is over, until
// ctx ends. What fails is tried again at the next turn.
func (fl *Follower) Run(ctx context.Context) error {
	turns := time.NewTicker(followEvery)
	defer turns.Stop()
	var counted, swept, forgotten time.Time
	for {
		now := fl.now()
		err := errors.Join(fl.follow(ctx), fl.settle(ctx, now), fl.moves(ctx))
		if now.Sub(swept) >= sweepEvery || now.Before(swept) {
			swept = now
			err = errors.Join(err, fl.sweep(ctx, now))
		}
		if now.Sub(counted) >= countEvery || now.Before(counted) {
			counted = now
			err = errors.Join(err, fl.count(ctx, now))
		}
		if now.Sub(forgotten) >= forgetEvery || now.Before(forgotten) {
			forgotten = now
			err = errors.Join(err, fl.forget(ctx, now))
		}
		if err == nil {
			fl.behind.LogRecovery(ctx, now, fl.log, "updating the review queue recovered")
		} else if ctx.Err() == nil {
			fl.behind.Log(ctx, now, fl.log, slog.LevelWarn, "updating the review queue failed, retrying", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-turns.C:
		case <-fl.kicked:
		}
	}
}

// follow brings what the journal says into the cases, as far as it goes.
func (fl *Follower) follow(ctx context.Context) error {
	var after uint64
	follower := feed.Follower[uint64, moderation.Entry]{
		Name: "review queue", Page: followStep, Log: moderation.LogOf(fl.journal),
		Position: func(ctx context.Context) (_ uint64, _ bool, err error) {
			after, err = fl.cases.Position(ctx)
			return after, true, err
		},
		Apply: func(ctx context.Context, entries []moderation.Entry, to uint64) error {
			return fl.apply(ctx, entries, after, to)
		},
	}
	if err := follower.CatchUp(ctx); !errors.Is(err, link.ErrConflict) {
		return err
	}
	return nil // another process does it
}

func (fl *Follower) apply(ctx context.Context, entries []moderation.Entry, after, to uint64) error {
	var steps []moderation.Step
	for i := range entries {
		step, err := fl.step(ctx, &entries[i])
		if err != nil {
			return err
		}
		if step != (moderation.Step{}) {
			steps = append(steps, step)
		}
		if e := &entries[i]; e.Action == moderation.ActionList && e.Entity.Kind == moderation.KindAllowedDestination {
			if steps, err = fl.allowed(ctx, e, steps); err != nil {
				return err
			}
		}
	}
	closed, err := fl.cases.Follow(ctx, after, to, steps)
	for i := range closed {
		fl.metrics.decided(&closed[i])
	}
	return err
}

// step is what an entry does to the queue: nothing, mostly. What the policy found
// nothing wrong with is no case.
func (fl *Follower) step(ctx context.Context, e *moderation.Entry) (s moderation.Step, err error) {
	k, ok := e.Entity.Key()
	if !ok && e.Entity.Kind != moderation.KindDestination || e.Action != moderation.ActionDecide && e.Action != moderation.ActionAnswer {
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
	o := moderation.Opening{Link: r, Source: moderation.FromPolicy, Sequence: e.Sequence, Score: e.Score, At: e.At, Due: e.At.Add(fl.opener.due)}
	if o.ID, err = fl.opener.ids.New(e.At); err != nil {
		return s, err
	}
	o.Facts, err = fl.facts(ctx, r, e.At, e.At)
	s.Open = &o
	return s, err
}

// allowed appends the closings of refused creates whose host is now on the list of allowed
// destinations: the entry of the list is the decision about them.
func (fl *Follower) allowed(ctx context.Context, e *moderation.Entry, steps []moderation.Step) ([]moderation.Step, error) {
	page := moderation.CasePage{Limit: moderation.MaxCasePage}
	for range sweepPages {
		cases, next, err := fl.cases.List(ctx, moderation.CaseFilter{Source: moderation.FromBlock, Order: moderation.ByNewest}, page)
		if err != nil {
			return nil, err
		}
		for i := range cases {
			if host := cases[i].Host; host == e.Entity.Name || strings.HasSuffix(host, "."+e.Entity.Name) {
				c := closing(e, cases[i].Link)
				steps = append(steps, moderation.Step{Close: &c})
			}
		}
		if page.After = next; next == (moderation.CasePosition{}) {
			break
		}
	}
	return steps, nil
}

// facts returns those of a link that something was decided about; zero while the link
// may not have been written since.
func (fl *Follower) facts(ctx context.Context, r moderation.Ref, decided, now time.Time) (f moderation.Facts, err error) {
	l, err := fl.links.Get(ctx, r.Key)
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

// settle looks again for the links of cases that wait for theirs, of some in each turn: many whose links never come must not
// keep the others waiting.
func (fl *Follower) settle(ctx context.Context, now time.Time) error {
	pending, err := fl.cases.Pending(ctx, fl.settled, followStep)
	if err != nil {
		return err
	}
	for i := range pending {
		c := &pending[i]
		f, err := fl.facts(ctx, c.Link, c.Opened, now)
		if err != nil {
			return err
		}
		if f == (moderation.Facts{}) && now.Sub(c.Opened) < fl.within {
			continue
		}
		if err := fl.cases.Describe(ctx, c.ID, f); err != nil {
			return err
		}
	}
	if fl.settled = (link.ID{}); len(pending) == followStep {
		fl.settled = pending[followStep-1].ID
	}
	return nil
}

// count keeps what the metrics show.
func (fl *Follower) count(ctx context.Context, now time.Time) error {
	open, overdue, err := fl.cases.Count(ctx, now)
	if err != nil {
		return err
	}
	fl.metrics.open.Set(float64(open))
	fl.metrics.overdue.Set(float64(overdue))
	fl.waiting.Store(int64(open))
	fl.overdue.Store(int64(overdue))
	return nil
}

// sweep closes the cases of links that are gone: nothing on the journal says that an owner
// deleted one, and nobody can decide about it any more.
func (fl *Follower) sweep(ctx context.Context, now time.Time) error {
	var p moderation.CasePage
	for range sweepPages {
		p.Limit = moderation.MaxCasePage
		cases, next, err := fl.cases.List(ctx, moderation.CaseFilter{}, p)
		if err != nil {
			return err
		}
		for i := range cases {
			if err := fl.closeIfGone(ctx, now, &cases[i]); err != nil {
				return err
			}
		}
		if p.After = next; next == (moderation.CasePosition{}) {
			return nil
		}
	}
	return nil
}

// closeIfGone closes an open case whose link was deleted or lost its content. What earlier entries of the
// journal still say of it joins the closed case.
func (fl *Follower) closeIfGone(ctx context.Context, now time.Time, c *moderation.Case) error {
	if c.Link.IsDestination() {
		return nil
	}
	l, err := fl.links.Get(ctx, c.Link.Key)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return nil // not yet written; settle drops what never is
	case err != nil:
		return fmt.Errorf("get %s: %w", c.Link.Key, err)
	case l.ID != c.Link.ID || l.Status != link.Deleted:
		return nil
	}
	by := moderation.ActorOwner
	if l.ContentRemoved() {
		by = moderation.ActorRetention
	}
	_, err = fl.cases.Close(ctx, moderation.Closing{Link: c.Link, Sequence: math.MaxInt64, At: now, By: by, Safety: l.Safety})
	if errors.Is(err, moderation.ErrNoCase) {
		return nil // a moderator was faster
	}
	return err
}

// forget erases what was written about cases that were closed long ago.
func (fl *Follower) forget(ctx context.Context, now time.Time) error {
	for {
		n, err := fl.cases.Forget(ctx, now.Add(-fl.retention), forgetStep)
		if err != nil || n < forgetStep {
			return err
		}
	}
}
