package pipeline

import (
	"context"
	"log/slog"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/background"
	"curt/internal/compose"
	"curt/internal/compose/stores"
)

// upkeep is the background work of one worker of the fleet on the statistics in ClickHouse.
type upkeep struct {
	store *clickhouse.Store
	log   *slog.Logger
}

// finalizeEvery is how often a worker looks for days that are to be finalized, finalizeRetry how
// often while ClickHouse is away.
const finalizeEvery, finalizeRetry = 5 * time.Minute, 10 * time.Second

// finalizeDays finalizes the days of ClickHouse that are over, until ctx ends. What fails is done at
// the next turn: meanwhile values are counted from the clicks themselves.
func (u upkeep) finalizeDays(ctx context.Context) error {
	return compose.Retry(ctx, u.log, slog.LevelError, "finalizing days failed, retrying", "finalizing days recovered", func(ctx context.Context) (time.Duration, error) {
		if u.store.Able() != nil {
			return finalizeRetry, compose.ErrSkipped
		}
		days, err := u.store.FinalizeDays(ctx, time.Now())
		if err == nil && days > 0 {
			u.log.InfoContext(ctx, "days finalized", slog.Int("days", days))
		}
		return finalizeEvery, err
	})
}

// dismissEvery is how often workers look for senders that have ended.
const dismissEvery = 10 * time.Second

// dismissSenders removes senders all of whose clicks every replica has counted, until ctx ends. What fails is done at
// the next turn: a sender that has ended holds up nothing.
func dismissSenders(ctx context.Context, replicas *clickhouse.Replicas, s *stores.Stores, log *slog.Logger) error {
	for ; ctx.Err() == nil; background.Sleep(ctx, dismissEvery) {
		for _, one := range replicas.EndedSenders() {
			if s.Senders == nil {
				continue
			}
			if err := s.Senders.Dismiss(ctx, one); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "removing a stopped sender failed, retrying", slog.Any("err", err))
			}
		}
	}
	return nil
}
