package review

import (
	"context"
	"errors"
	"time"
)

// Turn is one turn of Run.
func (d *Service) Turn(ctx context.Context, now time.Time) error {
	return errors.Join(d.follow(ctx), d.settle(ctx, now), d.moves(ctx), d.sweep(ctx, now), d.count(ctx, now), d.forget(ctx, now))
}

// Expire is one turn of RunExpiry.
func (d *Service) Expire(ctx context.Context, now time.Time) error { return d.expire(ctx, now) }
