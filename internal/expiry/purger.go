package expiry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// PurgeRate is how many links a second lose their content at most.
	PurgeRate = 100
	purgeStep = PurgeRate * int(sweepEvery/time.Second)
	// purgeWithin bounds the removals of one turn, which announcements wait for.
	purgeWithin = time.Second
	// purgeIdle is the pause after the last of them.
	purgeIdle = time.Minute
	// createsWithin is how long after its creation a link is visible at the latest, by any server's clock:
	// a create ends within seconds, the rest is for clocks that differ.
	createsWithin = time.Hour
)

// purger removes the content of links that expired long ago. Their tombstones stay, so that no code is
// given out twice. A removal is a Replace of the version that was read: where a link is changed at the
// same time, one of the two wins.
type purger struct {
	cfg     *Config
	after   link.Cursor // damaged links are passed over until the next walk
	due     time.Time   // of the next walk
	removed atomic.Uint64
	failing repeatlog.Condition
}

// step is the part of a walk that one turn removes.
type step struct {
	links []link.Link
	next  link.Cursor
	more  bool
	by    time.Time
}

// find returns links whose content is to be removed. What it returns is announced by every round that
// begins afterwards and reads the logs, but for what lateCreates names.
func (p *purger) find(ctx context.Context) (found step, err error) {
	now := p.cfg.Now()
	if p.cfg.Retention <= 0 || now.Before(p.due) && p.due.Sub(now) <= purgeIdle {
		return found, nil
	}
	found.by = now.Add(-p.cfg.Retention)
	keys, next, err := p.cfg.Links.Expired(ctx, p.after, found.by, purgeStep)
	if err != nil {
		return found, err
	}
	found.next, found.more = next, len(keys) == purgeStep
	found.links, err = link.GetMany(ctx, p.cfg.Links, keys)
	return found, err
}

// lateCreates returns the links of a step that may have become visible when the cursor of ends had passed
// them: those with a counted code that expired before they were created, or soon afterwards. The log of
// creates is to have them, but it ends at the oldest open transaction of the database, anybody's, and the
// index of ends, from which the step is, does not.
func (s *step) lateCreates() (keys []link.Key) {
	for i := range s.links {
		if l := &s.links[i]; l.CodeKind == link.Counted && l.Expires.Before(l.Created.Add(createsWithin)) && l.Ended(s.by) {
			keys = append(keys, l.Key)
		}
	}
	return keys
}

// remove removes the content of links that were announced.
func (p *purger) remove(ctx context.Context, found step) error {
	if found.by.IsZero() {
		return nil
	}
	began := p.cfg.Now()
	for i := range found.links {
		p.cfg.Yielder.Yield()
		if err := p.removeContent(ctx, &found.links[i], found.by); err != nil {
			return err
		}
		if p.cfg.Now().Sub(began) >= purgeWithin {
			return nil // the next turn finds the others
		}
	}
	if p.after = found.next; !found.more {
		p.after, p.due = "", p.cfg.Now().Add(purgeIdle)
	}
	return nil
}

// log tells the operator of a failure; the next turn retries.
func (p *purger) log(ctx context.Context, err error) {
	if err != nil {
		p.failing.Log(ctx, p.cfg.Now(), p.cfg.Log, slog.LevelWarn, "removing expired content and reservations failed, retrying", err)
		return
	}
	p.failing.LogRecovery(ctx, p.cfg.Now(), p.cfg.Log, "removing expired content and reservations recovered")
}

// removeContent removes the content of a link, unless it changed since it was read.
func (p *purger) removeContent(ctx context.Context, l *link.Link, by time.Time) error {
	if !l.Ended(by) {
		return nil
	}
	now := p.cfg.Now().UTC().Truncate(time.Millisecond)
	if now.Before(l.Updated) {
		now = l.Updated
	}
	stored, err := p.cfg.Links.Replace(ctx, l.WithoutContent(now), link.Edit{Principal: "retention"})
	switch {
	case errors.Is(err, link.ErrConflict):
		return nil
	case err != nil:
		return fmt.Errorf("remove the content of %s: %w", l.Key, err)
	}
	p.cfg.Changed(link.Change{Key: stored.Key, Version: stored.Version})
	p.removed.Add(1)
	return nil
}
