package cache

import (
	"context"
	"sync"
)

// askRefresh puts e into the queue; without room it is asked for again later.
func (c *Tiered) askRefresh(e *Held) {
	select {
	case c.due <- e:
	default:
		c.counts.crowded.Add(1)
	}
}

// Run refreshes entries that readers found due, at most Config.Refreshers at once,
// fills Config.L2 and keeps Config.Issued up to date. It returns nil when ctx has ended and all of
// its goroutines have.
func (c *Tiered) Run(ctx context.Context) error {
	var owned sync.WaitGroup
	for range c.cfg.Refreshers {
		owned.Go(func() { c.refresh(ctx) })
	}
	if c.cfg.L2 != nil {
		owned.Go(func() { c.share(ctx) })
	}
	if c.cfg.Issued != nil {
		if !c.cfg.Shared {
			c.cfg.Issued.refill() // with Shared, Follow asks for it once it hears changes
		}
		owned.Go(func() { c.cfg.Issued.keepMarks(ctx, c.cfg.Log) })
		owned.Go(func() { c.cfg.Issued.keepFilled(ctx, c.cfg.Log) })
	}
	owned.Wait()
	return nil
}

// refresh loads what is due, one after the other. A failure is on the entry, and
// in the counts; readers ask again.
func (c *Tiered) refresh(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-c.due:
			c.counts.refreshes.Add(1)
			h := c.hashString(e.Key.Domain, e.Key.Code)
			_, _ = c.load(ctx, h, e.Key, e, c.cfg.LoadTimeout)
		}
	}
}
