package pipeline

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/background"
	"curt/internal/compose"
	"curt/internal/telemetry"
)

const (
	// watchEvery is how often one hour is looked at, so that each of the last day's is every
	// two hours.
	watchEvery = 5 * time.Minute
	// closedAfter is how long after its end an hour is looked at first: most of what was on
	// its way has come by then.
	closedAfter = 10 * time.Minute
	watchHours  = 24
	// watchAgain is how long a difference may be of a block that is being inserted.
	watchAgain = 10 * time.Second
)

// watched compares the statistics in ClickHouse with the clicks, and is what is known of them. Its
// methods may be called by any goroutine, run by one.
type watched struct {
	store *clickhouse.Store
	first func() bool // whether this worker has the first partition
	log   *slog.Logger

	mu          sync.Mutex
	hours       map[time.Time]look // guarded by mu: by when they begin
	turn        int                // guarded by mu: looks so far
	unfinalized int                // guarded by mu: days
}

// look is what was found of an hour.
type look struct {
	at     time.Time
	drifts []reconcile.Drift
}

func (l look) off() (n uint64) {
	for _, d := range l.drifts {
		n += d.Off
	}
	return n
}

// next returns the hour that is to be looked at now: each second time one that was off, and
// else the newest that was never looked at, or the one that was looked at longest ago.
func (w *watched) next(now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	newest := now.Add(-closedAfter).UTC().Truncate(time.Hour).Add(-time.Hour)
	maps.DeleteFunc(w.hours, func(at time.Time, _ look) bool { return newest.Sub(at) >= watchHours*time.Hour })
	hours := make([]time.Time, watchHours)
	for back := range hours {
		hours[back] = newest.Add(-time.Duration(back) * time.Hour)
	}
	longest := func(a, b time.Time) int { return w.hours[a].at.Compare(w.hours[b].at) }
	w.turn++
	off := slices.DeleteFunc(slices.Clone(hours), func(at time.Time) bool { return w.hours[at].off() == 0 })
	if w.turn%2 == 0 && len(off) > 0 {
		return slices.MinFunc(off, longest)
	}
	return slices.MinFunc(hours, longest)
}

func (w *watched) keep(hour time.Time, l look) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hours == nil {
		w.hours = map[time.Time]look{}
	}
	w.hours[hour] = l
}

// forget is for what others look at now.
func (w *watched) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hours = nil
}

// off returns by how many events a table is off in the hours of the last day.
func (w *watched) off(table string) (n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.hours {
		for _, d := range l.drifts {
			if d.Table == table {
				n += d.Off
			}
		}
	}
	return n
}

func (w *watched) days() int { w.mu.Lock(); defer w.mu.Unlock(); return w.unfinalized }

// run compares what ClickHouse has added up with the clicks, an hour at a time, until ctx ends. Of
// several workers the one does that has the first partition.
func (w *watched) run(ctx context.Context) error {
	return compose.Retry(ctx, w.log, slog.LevelWarn, "comparing statistics with clicks failed, retrying", "comparing statistics with clicks recovered", func(ctx context.Context) (time.Duration, error) {
		if w.store.Able() != nil {
			return finalizeRetry, compose.ErrSkipped
		}
		return watchEvery, w.once(ctx, time.Now())
	})
}

func (w *watched) once(ctx context.Context, now time.Time) error {
	days, err := w.store.UnfinalizedDays(ctx, now)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.unfinalized = days
	w.mu.Unlock()
	if !w.first() {
		w.forget()
		return nil
	}
	hour := w.next(now)
	l := look{at: now}
	for tried := 0; ; tried++ {
		if l.drifts, err = w.store.Watch(ctx, hour, now); err != nil {
			return err
		}
		if l.off() == 0 || tried > 0 {
			break
		}
		background.Sleep(ctx, watchAgain)
	}
	w.keep(hour, l)
	if l.off() > 0 {
		w.log.ErrorContext(ctx, "statistics differ from raw clicks", slog.Time("hour", hour), slog.Uint64("off", l.off()))
	}
	return nil
}

// countWatched offers what was found of all replicas.
func countWatched(m *telemetry.Metrics, all []*watched) {
	sum := func(of func(*watched) uint64) func() float64 {
		return func() (n float64) {
			for _, w := range all {
				n += float64(of(w))
			}
			return n
		}
	}
	const name, help = "curt_clicks_drift", "Difference between statistics and raw clicks in ClickHouse, in clicks, over the last 24 complete hours."
	for _, table := range []string{"minutes", "quarters", "days"} {
		m.GaugeOf(name, help, "table", table, sum(func(w *watched) uint64 { return w.off(table) }))
	}
	m.Gauge("curt_days_unsettled", "Past days whose dimension values (countries, referrers) are not finalized.", sum(func(w *watched) uint64 { return uint64(w.days()) }))
}
