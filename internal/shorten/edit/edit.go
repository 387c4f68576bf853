// Package edit changes and deletes links, and judges them again when lists change. Read edit.go;
// recheck.go goes through all links.
package edit

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/shorten/judge"
)

// Editor changes and deletes links. It is safe for many goroutines.
type Editor struct {
	// Set once in New.
	store    link.Store
	rules    *shorten.Rules
	judge    *judge.Judge
	announce func(link.Change)
	queue    shorten.Queue
	locks    *keyLocks
	metrics  *metrics
}

// New returns an Editor, which calls announce with each change once it is durable.
func New(store link.Store, allowed *shorten.Rules, judging *judge.Judge, queue shorten.Queue, announce func(link.Change), reg prometheus.Registerer) *Editor {
	return &Editor{store: store, rules: allowed, judge: judging, queue: queue, announce: announce, locks: newKeyLocks(), metrics: newMetrics(reg)}
}

// metrics are what rechecks count.
type metrics struct{ rechecked, worse prometheus.Counter }

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(reg).NewCounter(prometheus.CounterOpts{Namespace: "curt", Name: name, Help: help})
	}
	return &metrics{
		rechecked: counter("links_rechecked_total", "Links rechecked after they were created."),
		worse:     counter("links_rechecked_worse_total", "Links that got a stricter safety in a recheck."),
	}
}

// Update changes a link and returns it as stored, one version up; a change that
// asks for nothing leaves the version alone. ErrVersion when match refuses the
// version that is stored.
func (s *Editor) Update(ctx context.Context, now time.Time, cause shorten.Cause, k link.Key, match shorten.Match, change *shorten.Change) (link.Link, error) {
	now = now.UTC().Truncate(time.Millisecond)
	changed, err := s.update(ctx, now, cause.Principal, k, match, change)
	s.judge.Refer(ctx, now, err)
	return changed, err
}

func (s *Editor) update(ctx context.Context, now time.Time, who auth.Principal, k link.Key, match shorten.Match, change *shorten.Change) (link.Link, error) {
	defer s.judge.BeginWrite()()
	r := &revision{who: who}
	stored, err := s.replace(ctx, who, k, match, func(l *link.Link) error {
		if change.Empty() {
			return errUnchanged
		}
		before := *l
		if err := s.rules.Apply(now, l, &change.Fields); err != nil {
			return err
		}
		if change.Status.Given {
			if s := change.Status.Value; s != link.Active && s != link.Disabled {
				return shorten.Invalid("status", "expected active or disabled")
			}
			l.Status = change.Status.Value
		}
		if err := s.assessChange(ctx, now, &before, l, r); err != nil {
			return err
		}
		l.Updated = later(now, l.Updated)
		return nil
	})
	if errors.Is(err, link.ErrNotFound) {
		err = s.whyNotFound(ctx, who, k, err)
	}
	return stored, err
}

// whyNotFound returns shorten.ErrContentRemoved for a change that came after the content of a link was
// removed, and shorten.Unwritten for one of a link that was never written, where the caller may know of the link, or else err.
func (s *Editor) whyNotFound(ctx context.Context, who auth.Principal, k link.Key, err error) error {
	l, got := s.store.Get(ctx, k)
	why := shorten.Unwritten(&l)
	if l.ContentRemoved() {
		why = shorten.ErrContentRemoved
	}
	if got != nil || why == nil || auth.May(who, auth.Unrestricted, auth.In(l.Workspace)) != nil {
		return err
	}
	return fmt.Errorf("change %s: %w", k, why)
}

// Delete leaves a tombstone: the content is erased, the code never used again. A link that was never written has
// one, which says why, as shorten.Unwritten.
func (s *Editor) Delete(ctx context.Context, now time.Time, cause shorten.Cause, k link.Key, match shorten.Match) error {
	now, who := now.UTC().Truncate(time.Millisecond), cause.Principal
	_, err := s.replace(ctx, who, k, match, func(l *link.Link) error {
		*l = l.Tombstone(later(now, l.Updated))
		return nil
	})
	if damaged, ok := errors.AsType[*link.DamagedError](err); ok {
		return s.discard(ctx, now, who, k, match, damaged, err)
	}
	if errors.Is(err, link.ErrNotFound) {
		if why := s.whyNotFound(ctx, who, k, err); !errors.Is(why, shorten.ErrContentRemoved) { // there is no such link to delete any more
			return why
		}
	}
	return err
}

// discard deletes a link that cannot be read, for its owner, if that can be told, or else for
// admins. Nobody knows its version, so that who names one is refused with err.
func (s *Editor) discard(ctx context.Context, now time.Time, who auth.Principal, k link.Key, match shorten.Match, damaged *link.DamagedError, err error) error {
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
// of one key run one after the other, so that of many at once the last wins and none loses.
func (s *Editor) replace(ctx context.Context, who auth.Principal, k link.Key, match shorten.Match, f func(*link.Link) error) (link.Link, error) {
	if err := auth.May(who, auth.ChangeLink, auth.Resource{}); err != nil {
		return link.Link{}, err
	}
	if who.IsAnonymous() { // may create, but owns nothing to change
		return link.Link{}, auth.ErrUnauthenticated
	}
	done, err := s.locks.lock(ctx, k)
	if err != nil {
		return link.Link{}, err
	}
	defer done()
	var seen link.Link
	pending, waits := s.queue.Find(k)
	stored, err := link.Update(ctx, s.store, k, who.KeyID, func(l *link.Link) error {
		if !shorten.Visible(who, *l) {
			return link.ErrNotFound
		}
		if !match.Accepts(l.Version) {
			return shorten.ErrVersion
		}
		seen = *l
		return f(l)
	})
	if !waits && seen.ID.IsZero() && errors.Is(err, link.ErrNotFound) {
		var failed error
		if pending, waits, failed = s.queue.Elsewhere(ctx, k); failed != nil {
			return link.Link{}, fmt.Errorf("change %s: %w", k, failed)
		}
	}
	switch {
	case errors.Is(err, errUnchanged):
		return seen, nil
	case errors.Is(err, link.ErrNotFound) && waits && shorten.Visible(who, pending) && seen.ID.IsZero():
		return link.Link{}, fmt.Errorf("change %s: %w", k, s.queue.Refused(&pending))
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

// revision is one change of a link on its way through the tries of link.Update.
type revision struct {
	who      auth.Principal
	recorded link.Safety // the decision that it has written into the journal; 0 = none
}

// assessChange judges a change of before to after, about what it sets or brings back to
// life: a link whose destination was found bad later may still be changed in other
// respects. What is graver than the link's safety becomes its safety, and is written
// into the journal first. What is milder changes nothing: a link is stopped for more than
// the URL that it has now, as for what was reported, and its owner is not who ends that.
func (s *Editor) assessChange(ctx context.Context, now time.Time, before, after *link.Link, r *revision) error {
	to := judge.URLsOf(after)
	if before.Status == after.Status || after.Status != link.Active { // it is not switched on
		if before.Destination == after.Destination {
			to.Destination = ""
		}
		if before.Fallback == after.Fallback {
			to.Fallback = ""
		}
	}
	if to == (judge.URLs{}) {
		return nil
	}
	f := s.judge.FactsOf(r.who, after.Workspace)
	f.Change = true
	found, err := s.judge.Assess(ctx, now, f, to)
	if err != nil {
		return err
	}
	if found.Safety <= after.Safety {
		return nil
	}
	if r.recorded != found.Safety { // once, however often others win
		if stands, err := s.judge.EffectiveDecision(ctx, after); err != nil {
			return err
		} else if stands.Safety > found.Safety { // and is about to be the link's
			after.Safety = stands.Safety
			return nil
		}
		if err := s.judge.Record(ctx, now, &judge.Proposal{Link: *after, Judged: found}); err != nil {
			return err
		}
		r.recorded = found.Safety
		s.judge.CountWarned()
	}
	after.Safety = found.Safety
	return nil
}

const (
	// stripes bounds the memory of keyLocks. Two keys of one stripe wait for each other,
	// which costs a commit and nothing else.
	stripes = 1024
	// maxWait bounds how long a change waits for its turn: some hundred commits of a
	// slow disk. Whoever waits longer is one of a crowd that had better come back.
	maxWait = 15 * time.Second
)

// keyLocks lets one change of a key happen at a time in this process, in the order of
// arrival. The compare-and-swap below it stays what keeps changes apart; without locks
// each of n changes at once loses up to n rounds of it.
type keyLocks struct {
	seed maphash.Seed
	held [stripes]chan struct{} // full while somebody has the turn
}

func newKeyLocks() *keyLocks {
	t := &keyLocks{seed: maphash.MakeSeed()}
	for i := range t.held {
		t.held[i] = make(chan struct{}, 1)
	}
	return t
}

// lock returns when it is the caller's turn at k, which it must give back with done.
// Errors: that of ctx, and link.ErrUnavailable after maxWait; then done is nil.
func (t *keyLocks) lock(ctx context.Context, k link.Key) (done func(), err error) {
	held := t.held[maphash.Comparable(t.seed, k)%stripes]
	done = func() { <-held }
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("wait to change %s: %w", k, err)
	}
	select {
	case held <- struct{}{}:
		return done, nil
	default:
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case held <- struct{}{}:
		return done, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to change %s: %w", k, ctx.Err())
	case <-timer.C:
		return nil, fmt.Errorf("%w: %s has too many concurrent changes", link.ErrUnavailable, k)
	}
}
