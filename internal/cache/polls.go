package cache

import (
	"context"
	"sync"
	"time"
)

// hearLimit bounds the wait for the change log: some ten times what reading its end takes,
// with the pause before.
const hearLimit = 250 * time.Millisecond

// polls lets look-ups wait for the change log: for one reading together, however many they
// are.
type polls struct {
	mu    sync.Mutex
	began int64         // guarded by mu: when the last reading that reached the end began
	next  chan struct{} // guarded by mu: closed with the next such; nil = nobody waits
}

// ended tells of a reading that reached the log's end.
func (p *polls) ended(began int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = began
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}

// after returns nil when a reading that began after now has reached the end, and otherwise
// what is closed with the next that does.
func (p *polls) after(now int64) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began > now {
		return nil
	}
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.next
}

// heardAll reports whether every change that was acknowledged before the call has been
// heard. With a shared store it waits for that: without it a link that another process has
// just made would be unknown here for a second. Who tries codes at random makes the process
// read the end of the log up to fifty times a second, all of them together.
func (c *Tiered) heardAll(ctx context.Context) bool {
	if !c.cfg.Shared {
		return true
	}
	now := c.clock()
	ctx, cancel := context.WithTimeout(ctx, hearLimit)
	defer cancel()
	for {
		next := c.polls.after(now)
		if next == nil {
			return true
		}
		c.poke()
		select {
		case <-ctx.Done():
			return false
		case <-next:
		}
	}
}
