package create

import (
	"context"
	"fmt"

	"curt/internal/link"
	"curt/internal/shorten"
)

// enqueue puts rows into the queue, and returns those that have to be written at once: an alias is told whether
// it is free, dedupe whether there is such a link, and clicks of a link with a limit are counted in the store.
func (b *batch) enqueue(ctx context.Context, rows []*Row) (rest []*Row, err error) {
	if !b.c.queues || b.written {
		return rows, nil
	}
	var queued []*Row
	var links []link.Link
	for _, r := range rows {
		if r.Request.Alias.Some() || r.dedupes() || r.link.MaxClicks > 0 {
			rest = append(rest, r)
			continue
		}
		queued, links = append(queued, r), append(links, r.link.Link)
	}
	if len(queued) == 0 {
		return rest, nil
	}
	results, err := retryUncertain(ctx, b.c.metrics.retries, links[0].Key, func() ([]link.Result, error) { return b.c.queue.Put(ctx, links) })
	if err != nil {
		return nil, err
	}
	for i, r := range queued {
		b.accept(ctx, r, &results[i])
	}
	return rest, nil
}

// Await waits until a link is written that is pending here, and returns it as it is stored then. A link that is still pending when ctx
// ends is returned as it was; one that was refused for good is link.ErrNotFound, with the reason where its tombstone has one.
func (c *Creator) Await(ctx context.Context, l *link.Link) (link.Link, error) {
	if !l.IsPending() || c.queue.Await(ctx, l.Key) != nil {
		return *l, nil //nolint:nilerr // it is still pending, and will be written
	}
	stored, err := c.cfg.Store.Get(ctx, l.Key)
	switch {
	case err != nil:
		return *l, fmt.Errorf("get %s: %w", l.Key, err)
	case stored.Unwritten() != 0:
		return *l, fmt.Errorf("get %s: %w", l.Key, shorten.Unwritten(&stored))
	case stored.ID != l.ID || stored.Status == link.Deleted:
		return *l, fmt.Errorf("get %s: it could not be written: %w", l.Key, link.ErrNotFound)
	}
	return stored, nil
}
