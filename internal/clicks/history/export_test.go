package history

import (
	"context"
)

// Tick does what Run does once a second.
func (h *History) Tick(ctx context.Context) {
	h.follow(ctx)
	h.store(ctx)
	for h.complete(ctx) {
	}
}

func (h *History) Follow(ctx context.Context) { h.follow(ctx) }

// What tests of faults need of this package, and nobody else.

const (
	IndexPageSize = pageSize
	IndexPageHead = pageHead
)
