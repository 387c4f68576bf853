package cache

import (
	"context"

	"curt/internal/link"
)

// LoadAfterMiss is what a look-up does that found nothing in L1 a moment ago.
func (c *Tiered) LoadAfterMiss(ctx context.Context, k link.Key) error {
	_, err := c.loader.load(ctx, c.l1.hash.Of(k.Domain, k.Code), k, nil, c.loader.limit)
	return err
}

// DropAll is what follows when the follower lost its position.
func (c *Tiered) DropAll() { c.changes.missed() }
