package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"curt/internal/link"
)

// changesPerPage bounds one question to the change log.
const changesPerPage = 1000

// Follow hears what other processes change: it reads the change log to its end
// every interval (1 s by design) and tells Changed. It begins at the log's head
// with an empty L1. A position that was trimmed away means that changes were
// missed: everything is dropped, and it begins again. It returns nil when ctx ends;
// while the log cannot be read, Behind grows and L1 is served on.
func (c *Tiered) Follow(ctx context.Context, log ChangeLog, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	at, begun := link.Sequence(0), false
	for {
		next, err := c.poll(ctx, log, at, begun)
		switch {
		case err == nil:
			at, begun = next, true
			c.polled.Store(c.clock())
		case begun && errors.Is(err, link.ErrConflict):
			begun = false
			continue // at once: until then nothing is certain
		default:
			at = next
			if ctx.Err() == nil {
				c.cfg.Log.WarnContext(ctx, "change log cannot be read", slog.Any("err", err))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// poll reads the log from after at to its end and returns the position reached,
// also when it fails half-way.
func (c *Tiered) poll(ctx context.Context, log ChangeLog, at link.Sequence, begun bool) (link.Sequence, error) {
	ctx, cancel := context.WithTimeout(ctx, feedLimit) // a store that hangs is asked anew
	defer cancel()
	if !begun {
		return c.begin(ctx, log)
	}
	for {
		changes, err := log.Changes(ctx, at, changesPerPage)
		if err != nil {
			return at, fmt.Errorf("read changes after %d: %w", at, err)
		}
		c.Changed(changes...)
		if len(changes) > 0 {
			at = changes[len(changes)-1].Sequence
		}
		if len(changes) < changesPerPage {
			return at, nil
		}
	}
}

// begin takes the head first and forgets everything after: what changed before the
// head cannot be in L1 then, and what changes later is heard.
func (c *Tiered) begin(ctx context.Context, log ChangeLog) (link.Sequence, error) {
	head, err := log.Head(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the head of the change log: %w", err)
	}
	c.DropAll()
	if c.cfg.Issued != nil {
		c.cfg.Issued.refill()
	}
	return head, nil
}
