package review

import (
	"context"
	"errors"
	"time"
)

// Turn is one turn of Run.
func (d *Desk) Turn(ctx context.Context, now time.Time) error {
	return errors.Join(d.follow(ctx), d.settle(ctx, now), d.moves(ctx), d.sweep(ctx, now), d.count(ctx, now), d.forget(ctx, now))
}
