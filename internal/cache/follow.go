package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// changesPerPage bounds one question to the change log.
	changesPerPage = 1000
	// relayed is how many changes that the log told a process passes on; of more than
	// that it passes on how far they go.
	relayed = 100
	// heardPolls is how many intervals go by between two readings while the bus is heard:
	// whoever died between a write and its note is found by the log alone.
	heardPolls = 4
	// pollPause is the least time between two readings, so that many changes of one
	// moment are read together.
	pollPause = 20 * time.Millisecond
)

// Follow hears what other processes change: it reads the change log to its end
// every interval (1 s by design) and tells Changed. It begins at the log's head
// with an empty L1. A position that was trimmed away means that changes were
// missed, and so does a log that ends before the position: everything is dropped, and it
// begins again. It returns nil when ctx ends;
// while the log cannot be read, Behind grows and L1 is served on.
//
// With Config.Bus the log is read when the bus says that there is something, every
// fourth interval, and every interval while the bus is silent.
func (c *Tiered) Follow(ctx context.Context, log ChangeLog, interval time.Duration) error {
	var owned sync.WaitGroup
	defer owned.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	owned.Go(func() { c.tell(ctx) })
	if c.cfg.Bus != nil {
		owned.Go(func() { c.listen(ctx) })
	}
	if c.cfg.L2 != nil {
		owned.Go(func() { c.recall(ctx, log) })
	}
	c.follow(ctx, log, interval)
	return nil
}

func (c *Tiered) follow(ctx context.Context, log ChangeLog, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	follower := c.follower(log)
	wanted, skipped := true, 0
	var unread repeatlog.Condition
	for {
		if wanted {
			skipped = 0
			began := c.clock()
			if err := poll(ctx, follower); err == nil {
				c.polled.Store(c.clock())
				c.polls.ended(began)
				if sum, due := unread.Over(time.Now()); due {
					c.cfg.Log.InfoContext(ctx, "change log can be read again", sum)
				}
			} else if ctx.Err() == nil {
				if again, due := unread.Met(time.Now()); due {
					c.cfg.Log.WarnContext(ctx, "change log cannot be read", slog.Any("err", err), again)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.recent.settle(c.clock())
			head, _ := c.recent.head()
			c.publish(ctx, Note{Head: head})
			skipped++
			wanted = skipped >= heardPolls || c.clock()-c.heard.Load() > int64(silence) || c.cfg.Bus == nil
		case <-c.kick:
			wanted = true
			select {
			case <-ctx.Done():
				return
			case <-time.After(pollPause):
			}
		}
	}
}

// poll reads the log from where it was heard to its end. What was read before a failure
// counts.
func poll(ctx context.Context, f *feed.Follower[link.Sequence, link.Change]) error {
	ctx, cancel := context.WithTimeout(ctx, feedLimit) // a store that hangs is asked anew
	defer cancel()
	return f.CatchUp(ctx)
}

// follower is the cache as one that follows the change log.
func (c *Tiered) follower(log ChangeLog) *feed.Follower[link.Sequence, link.Change] {
	return &feed.Follower[link.Sequence, link.Change]{
		Name: "cache", Page: changesPerPage,
		Log: feed.Log[link.Sequence, link.Change]{Read: log.Changes, Head: log.Head, At: func(ch *link.Change) link.Sequence { return ch.Sequence }},
		Position: func(context.Context) (link.Sequence, bool, error) {
			at, begun := c.recent.head()
			return at, begun, nil
		},
		Apply: func(ctx context.Context, changes []link.Change, to link.Sequence) error {
			for _, ch := range changes {
				c.recent.read(c.hashString(ch.Key.Domain, ch.Key.Code), ch)
			}
			c.Changed(changes...)
			n := Note{Head: to}
			if len(changes) <= relayed {
				n.Changes = changes
			}
			c.publish(ctx, n)
			return nil
		},
		Rebuild: func(ctx context.Context) error { return c.begin(ctx, log) },
	}
}

// begin takes the head first and forgets everything after: what changed before the
// head cannot be in L1 then, and what changes later is heard. Until it is done, nothing is certain.
func (c *Tiered) begin(ctx context.Context, log ChangeLog) error {
	c.recent.lost()
	head, err := log.Head(ctx)
	if err != nil {
		return fmt.Errorf("read the head of the change log: %w", err)
	}
	c.recent.begin(head)
	c.DropAll()
	if c.cfg.Issued != nil {
		c.cfg.Issued.refill()
	}
	return nil
}

// recall reads the log backwards from where Follow began, so that what others put into L2
// before this process started can be vouched for. It tries again until ctx ends, also
// after a position was lost.
func (c *Tiered) recall(ctx context.Context, log ChangeLog) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for c.recallPage(ctx, log) {
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// recallPage reads one page, and reports whether there may be more.
func (c *Tiered) recallPage(ctx context.Context, log ChangeLog) bool {
	low, wanted := c.recent.unknown()
	if !wanted {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, feedLimit)
	defer cancel()
	from := low - min(low, changesPerPage)
	changes, err := log.Changes(ctx, from, int(low-from))
	if errors.Is(err, link.ErrConflict) { // trimmed: that is all there is
		c.recent.complete()
		return false
	}
	if err != nil {
		return false
	}
	hashes := make([]uint64, len(changes))
	for i, ch := range changes {
		hashes[i] = c.hashString(ch.Key.Domain, ch.Key.Code)
	}
	return c.recent.before(from, hashes, changes)
}
