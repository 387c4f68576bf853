package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/background"
	"curt/internal/compose"
	"curt/internal/telemetry"
	"curt/internal/worker"
	"curt/internal/worker/heal"
)

const (
	reconcileEvery = time.Hour
	// reconcileRetry is how long after a failure the next attempt is.
	reconcileRetry = time.Minute
	// mostPending is how often in a row clicks are awaited that cannot be compared yet: those of the
	// last blocks can be when the next ones are inserted, those that Kafka no longer has never.
	mostPending = 10
)

// reconciler compares clicks with Kafka and with their sums, and heals what differs. Its counters may
// be read by any goroutine.
type reconciler struct {
	replay   worker.Replay
	store    *clickhouse.Store
	log      *slog.Logger
	replicas *clickhouse.Replicas
	inserted func(group string) map[int32]int64 // by this server's worker
	keep     time.Duration                      // of all clicks one by one

	// tried is owned by run: by replica, the days that were repaired from it, and how many rows were lacking after that.
	tried    map[*clickhouse.Store]map[time.Time]uint64
	last     atomic.Pointer[heal.Report] // nil = not yet, or by another server
	replayed atomic.Uint64               // clicks
	refilled atomic.Uint64               // likewise, from another replica
}

// run reconciles until ctx ends.
func (r *reconciler) run(ctx context.Context) error {
	defer r.last.Store(nil) // another server has the lease
	r.tried = map[*clickhouse.Store]map[time.Time]uint64{}
	pending, due := 0, time.Time{}
	return compose.Retry(ctx, r.log, slog.LevelError, "reconciling clicks failed, retrying", "reconciling clicks recovered", func(ctx context.Context) (time.Duration, error) {
		if r.store.Healthy() != nil || time.Now().Before(due) && !r.store.LastReplica().Filling {
			return finalizeRetry, compose.ErrSkipped
		}
		report, err := r.step(ctx)
		switch {
		case errors.Is(err, errFilled):
			return 0, nil
		case errors.Is(err, errNoSource):
			return finalizeRetry, compose.ErrSkipped
		case errors.Is(err, heal.ErrUnknown):
			return finalizeRetry, compose.ErrSkipped
		case err != nil:
			return reconcileRetry, err
		}
		r.last.Store(&report)
		r.replayed.Add(report.Replayed)
		switch at := []any{slog.Time("until", report.Until), slog.Uint64("clicks", report.Clicks), slog.Uint64("wrong", report.Wrong), slog.Int("hours_off", report.Off), slog.Uint64("replayed", report.Replayed), slog.Int("days_healed", report.Healed)}; {
		case report.Wrong > 0 || report.Off > 0:
			r.log.ErrorContext(ctx, "clicks differ from kafka or from their sums", at...)
		case report.Healed > 0:
			r.log.WarnContext(ctx, "clicks healed", at...)
		}
		if pending++; report.Pending && pending <= mostPending {
			return reconcileRetry, nil
		}
		pending, due = 0, time.Now().Add(reconcileEvery)
		return finalizeRetry, nil // a gap does not wait for an hour
	})
}

// step fills the replica if it is new or has a gap, and reconciles it otherwise.
func (r *reconciler) step(ctx context.Context) (heal.Report, error) {
	state, err := r.store.Replica(ctx)
	if err != nil {
		return heal.Report{}, err
	}
	same := sameReplica{r.store, state.ID}
	replay := r.replay
	replay.Group = worker.GroupOf(replay.Kafka.Topic, state.ID)
	if state.Filling {
		return heal.Report{}, r.fill(ctx, same, replay.Group, state.Gap)
	}
	report, err := heal.Once(ctx, heal.Config{Replay: replay, Store: same, Clock: time.Now, Sleep: background.Sleep})
	if err != nil {
		return report, err
	}
	return report, r.repair(ctx, same, replay.Group)
}

// countReconciled offers the sums of what was found in all replicas; all of it is zero where another
// server reconciles.
func countReconciled(m *telemetry.Metrics, all []*reconciler) {
	gauge := func(name, help string, of func(*heal.Report) float64) {
		m.Gauge(name, help, func() (sum float64) {
			for _, r := range all {
				if report := r.last.Load(); report != nil {
					sum += of(report)
				}
			}
			return sum
		})
	}
	gauge("curt_reconciled_clicks", "Clicks in Kafka of today and yesterday that were compared with ClickHouse.", func(r *heal.Report) float64 { return float64(r.Clicks) })
	gauge("curt_reconciled_wrong", "Clicks of these that are missing in ClickHouse or there twice, after healing.", func(r *heal.Report) float64 { return float64(r.Wrong) })
	gauge("curt_reconciled_hours_off", "Hours of today and yesterday whose statistics differ from raw clicks, after healing.", func(r *heal.Report) float64 { return float64(r.Off) })
	gauge("curt_reconciled_given_up", "Hours that three attempts did not heal.", func(r *heal.Report) float64 { return float64(r.GivenUp) })
	m.Gauge("curt_reconciled_age_seconds", "Time since the last reconciliation; 0 where another server reconciles.", func() (age float64) {
		for _, r := range all {
			if report := r.last.Load(); report != nil {
				age = max(age, time.Since(report.At).Seconds())
			}
		}
		return age
	})
	count := func(name, help string, of func(*reconciler) uint64) {
		m.Counter(name, help, func() (sum uint64) {
			for _, r := range all {
				sum += of(r)
			}
			return sum
		})
	}
	count("curt_reconciled_replayed_total", "Clicks replayed from Kafka by reconciliations.", func(r *reconciler) uint64 { return r.replayed.Load() })
	count("curt_replica_refilled_total", "Clicks copied from one replica of ClickHouse to another.", func(r *reconciler) uint64 { return r.refilled.Load() })
}
