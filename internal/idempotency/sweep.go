package idempotency

import (
	"context"
	"log/slog"
	"time"

	"curt/internal/background"
)

const (
	// sweepEvery is how much longer than Keep a record may lie in the store: too old
	// ones count as absent anyway.
	sweepEvery = 10 * time.Minute
	// sweepStep is how many records one write removes; creates wait for no more.
	sweepStep = 500
)

// Sweeper removes the records that no longer stand.
type Sweeper struct {
	store Store
	log   *slog.Logger
	now   func() time.Time
}

// NewSweeper returns a Sweeper; it does nothing until Run. now is normally time.Now.
func NewSweeper(store Store, now func() time.Time, log *slog.Logger) *Sweeper {
	return &Sweeper{store: store, now: now, log: log}
}

// Run sweeps at once and then every ten minutes until ctx ends. A store that fails is
// asked again at the next turn.
func (s *Sweeper) Run(ctx context.Context) error {
	for range background.Every(ctx, sweepEvery) {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "deleting expired idempotency keys failed, retrying", slog.Any("err", err))
		}
	}
	return context.Cause(ctx)
}

func (s *Sweeper) sweep(ctx context.Context) error {
	before := s.now().Add(-Retention)
	for {
		n, err := s.store.Forget(ctx, before, sweepStep)
		if err != nil || n < sweepStep {
			return err
		}
	}
}
