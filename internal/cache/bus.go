package cache

import (
	"context"
	"log/slog"
	"time"

	"curt/internal/link"
)

const (
	// silence is how long the bus may say nothing before it is not relied upon. Every
	// process says each second how far it knows the change log, and hears itself.
	silence = 2500 * time.Millisecond
	// resubscribe is how long a subscription may be silent before it is made anew: a
	// connection that is half open ends by nothing else.
	resubscribe = 2 * silence
	// subscribePause is between two attempts to subscribe.
	subscribePause = 500 * time.Millisecond
	// outboxBatch is how many changes are told at once.
	outboxBatch = 256
)

// Note is what processes tell each other on the bus.
type Note struct {
	// Changes are hints: from now on nothing below their versions may be served. A
	// sequence of 0 means that the sender does not know it yet.
	Changes []link.Change
	// Head is how far the sender knows the change log; 0 = it does not say, or nothing was
	// changed yet, and Changes have no sequences.
	Head link.Sequence
}

// Bus brings Notes to all processes, the sender included, soon and mostly: a note may be
// lost, come twice or out of order. The change log is the truth. It is safe for many
// goroutines.
type Bus interface {
	// Publish sends a note. It has a short deadline of its own. An error means that
	// others may not hear it.
	Publish(ctx context.Context, n Note) error
	// Subscribe calls hear, from one goroutine, for each note until ctx ends or the
	// subscription does, and returns why. Notes sent from the time that it calls begun
	// on arrive, while the connection lasts. Messages that this release cannot read are
	// passed over.
	Subscribe(ctx context.Context, begun func(), hear func(Note)) error
}

// listen keeps a subscription until ctx ends.
func (c *Tiered) listen(ctx context.Context) {
	for ctx.Err() == nil {
		once, cancel := context.WithCancel(ctx)
		quiet := time.AfterFunc(resubscribe, cancel)
		err := c.cfg.Bus.Subscribe(once, c.poke, func(n Note) {
			quiet.Reset(resubscribe)
			c.hear(n)
		})
		quiet.Stop()
		cancel()
		c.poke() // what was said meanwhile is in the log
		if ctx.Err() != nil {
			return
		}
		c.cfg.Log.DebugContext(ctx, "the bus was lost", slog.Any("err", err))
		select {
		case <-ctx.Done():
		case <-time.After(subscribePause):
		}
	}
}

// hear takes a note: hints count at once, and a jump of the sequence has the change log
// read. Hints without a sequence follow once more with it, so that not every process has
// to read the log for each.
func (c *Tiered) hear(n Note) {
	c.counts.notes.Add(1)
	c.told.Store(c.clock())
	whole := true
	for _, ch := range n.Changes {
		if ch.Sequence > 0 && !c.recent.advance(c.hashString(ch.Key.Domain, ch.Key.Code), ch) {
			whole = false
		}
		c.changed(ch.Key, ch.Version)
	}
	if n.Head == 0 {
		return
	}
	if at, begun := c.recent.head(); whole && begun && n.Head <= at {
		c.heard.Store(c.clock())
		return
	}
	c.counts.gaps.Add(1)
	c.poke()
}

// tell sends what this process changed, and leaves a mark in L2 that keeps older versions
// out, until ctx ends. Errors are the driver's to count: others hear from the log.
func (c *Tiered) tell(ctx context.Context) {
	for {
		var n Note
		select {
		case <-ctx.Done():
			return
		case ch := <-c.outbox:
			n.Changes = append(n.Changes, ch)
		}
		for len(n.Changes) < outboxBatch && len(c.outbox) > 0 {
			n.Changes = append(n.Changes, <-c.outbox)
		}
		c.publish(ctx, n)
		if c.cfg.L2 == nil {
			continue
		}
		for _, ch := range n.Changes {
			_ = c.cfg.L2.Put(ctx, ch.Key, Entry{
				Target: link.Target{Version: ch.Version}, Void: true, Until: time.Now().Add(sharedFor),
			})
		}
	}
}

func (c *Tiered) publish(ctx context.Context, n Note) {
	if c.cfg.Bus != nil {
		_ = c.cfg.Bus.Publish(ctx, n)
	}
}
