package server

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/repeatlog"
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

// watched is what is known of the statistics in ClickHouse. Its methods may be called by any
// goroutine.
type watched struct {
	mu        sync.Mutex
	hours     map[time.Time]look // guarded by mu: by when they begin
	turn      int                // guarded by mu: how often somebody looked
	unsettled int                // guarded by mu: days
}

// look is what was found of an hour.
type look struct {
	at     time.Time
	drifts []clickhouse.Drift
}

func (l look) off() (n uint64) {
	for _, d := range l.drifts {
		n += d.Off
	}
	return n
}

// next returns the hour that is to be looked at now: each second time one that was off, and
// else the newest that nobody has looked at, or the one that was looked at longest ago.
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

func (w *watched) days() int { w.mu.Lock(); defer w.mu.Unlock(); return w.unsettled }

// watchCounts compares what ClickHouse has added up with the clicks, an hour at a time, until
// ctx ends. Of several workers the one does that has the first partition.
func (s *Server) watchCounts(ctx context.Context) error {
	var failing repeatlog.Condition
	for ctx.Err() == nil {
		pause := settleRetry
		if s.clicks.counted.Healthy() == nil {
			pause = watchEvery
			if err := s.watchOnce(ctx, time.Now()); err != nil && ctx.Err() == nil {
				if again, due := failing.Met(time.Now()); due {
					s.log.WarnContext(ctx, "the statistics are not compared with the clicks, it is tried again", slog.Any("err", err), again)
				}
			} else if sum, due := failing.Over(time.Now()); due {
				s.log.InfoContext(ctx, "the statistics are compared with the clicks again", sum)
			}
		}
		wait(ctx, pause, nil)
	}
	return nil
}

func (s *Server) watchOnce(ctx context.Context, now time.Time) error {
	store, w := s.clicks.counted, &s.watched
	days, err := store.Unsettled(ctx, now)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.unsettled = days
	w.mu.Unlock()
	if !s.events.worker.First() {
		w.forget()
		return nil
	}
	hour := w.next(now)
	l := look{at: now}
	for tried := 0; ; tried++ {
		if l.drifts, err = store.Watch(ctx, hour, now); err != nil {
			return err
		}
		if l.off() == 0 || tried > 0 {
			break
		}
		wait(ctx, watchAgain, nil)
	}
	w.keep(hour, l)
	if l.off() > 0 {
		s.log.ErrorContext(ctx, "statistics and clicks differ", slog.Time("hour", hour), slog.Uint64("off", l.off()))
	}
	return nil
}

// countDrift offers what was found.
func (s *Server) countDrift() {
	if s.events.worker == nil || s.clicks.counted == nil {
		return
	}
	const name, help = "curt_clicks_drift", "By how many clicks statistics in ClickHouse differ from the clicks there, in the last 24 hours that are over."
	for _, table := range []string{"minutes", "quarters", "days"} {
		s.metrics.GaugeOf(name, help, "table", table, func() float64 { return float64(s.watched.off(table)) })
	}
	s.metrics.Gauge("curt_days_unsettled", "Days that are over whose values (countries, referrers) nobody has added up.", func() float64 { return float64(s.watched.days()) })
}
