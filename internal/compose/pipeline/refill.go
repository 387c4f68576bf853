package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/background"
	"curt/internal/worker/refill"
)

const utcDay = 24 * time.Hour

var (
	// errNoSource says that no other replica can fill this one now.
	errNoSource = errors.New("no replica to fill this one from")
	// errFilled says that a replica was filled.
	errFilled = errors.New("filled")
)

// source returns the replica to fill this one from: one that is complete, or any where all answer
// and none is complete, as in a new installation.
func (r *reconciler) source() (any *clickhouse.Store) {
	unknown := false
	for _, s := range r.replicas.All() {
		switch {
		case s == r.store:
		case s.Able() == nil:
			return s
		case s.Healthy() != nil:
			unknown = true // it may be the complete one
		case any == nil:
			any = s
		}
	}
	if unknown {
		return nil
	}
	return any
}

// fill gives a replica that is new, or has a gap, what Kafka no longer has.
func (r *reconciler) fill(ctx context.Context, same sameReplica, group string, gap time.Time) error {
	source := r.source()
	if source == nil {
		return r.fillFromKafka(ctx, same, group, gap)
	}
	r.log.InfoContext(ctx, "filling a replica of clickhouse", slog.String("from", source.Address()))
	c := r.refill(ctx, same, source, group)
	c.Gap = gap
	done, err := refill.All(ctx, c)
	r.refilled.Add(done.Clicks)
	switch {
	case errors.Is(err, refill.ErrSourceLacks):
		return errNoSource // yet
	case err != nil:
		return err
	}
	r.log.InfoContext(ctx, "replica of clickhouse filled", slog.Int("days", done.Days), slog.Uint64("clicks", done.Clicks))
	return errFilled
}

// fillFromKafka takes a replica for complete that has everything that Kafka ever had. The others are away, or
// not named.
func (r *reconciler) fillFromKafka(ctx context.Context, same sameReplica, group string, gap time.Time) error {
	c := r.refill(ctx, same, nil, group)
	c.Gap = gap
	switch complete, err := refill.FromKafka(ctx, c); {
	case err != nil:
		return err
	case !complete:
		return errNoSource
	}
	r.log.InfoContext(ctx, "replica of clickhouse filled from kafka alone")
	return errFilled
}

func (r *reconciler) refill(ctx context.Context, same sameReplica, source *clickhouse.Store, group string) refill.Config {
	return refill.Config{
		Kafka: r.replay.Kafka, Group: group, Source: source, Target: same, Retention: r.keep, Inserted: r.inserted, Sleep: background.Sleep, Now: time.Now(),
		Day: func(at time.Time, done, all int, inserted uint64) {
			r.log.InfoContext(ctx, "day of a replica filled", slog.String("day", at.Format(time.DateOnly)), slog.Int("done", done), slog.Int("of", all), slog.Uint64("clicks", inserted))
		},
	}
}

// repair gives a replica the clicks of days of which another one has more, although it is none that is
// filling: it lost them. What a repair did not change, such as rows that are there twice, is left alone.
func (r *reconciler) repair(ctx context.Context, same sameReplica, group string) error {
	for _, source := range r.replicas.All() {
		if source == r.store || source.Able() != nil {
			continue
		}
		lacking, err := r.lacking(ctx, source, time.Now().UTC())
		if err != nil {
			return err
		}
		maps.DeleteFunc(lacking, func(at time.Time, rows uint64) bool { return r.tried[source][at] == rows })
		if len(lacking) == 0 {
			continue
		}
		done, err := refill.Some(ctx, r.refill(ctx, same, source, group), slices.SortedFunc(maps.Keys(lacking), time.Time.Compare))
		r.refilled.Add(done.Clicks)
		if err != nil {
			return err
		}
		r.log.WarnContext(ctx, "replica of clickhouse lacked clicks", slog.String("from", source.Address()), slog.Int("days", len(lacking)), slog.Uint64("clicks", done.Clicks))
		if r.tried[source], err = r.lacking(ctx, source, time.Now().UTC()); err != nil {
			return err
		}
	}
	return nil
}

// lacking returns how many rows more another replica has of each day: of complete hours of today and
// yesterday, and of the days before, of which no click expires.
func (r *reconciler) lacking(ctx context.Context, source *clickhouse.Store, now time.Time) (map[time.Time]uint64, error) {
	mine, err := r.store.RowsOfDays(ctx)
	if err != nil {
		return nil, err
	}
	theirs, err := source.RowsOfDays(ctx)
	if err != nil {
		return nil, err
	}
	until := now
	for _, s := range []*clickhouse.Store{r.store, source} {
		if at := s.LastProgress().Complete; at.Before(until) {
			until = at
		}
	}
	from := now.Truncate(utcDay).Add(-utcDay)
	lacking := map[time.Time]uint64{}
	for at, rows := range theirs {
		if at.Before(from) && at.After(now.Add(-r.keep)) && rows > mine[at] {
			lacking[at] = rows - mine[at]
		}
	}
	if until = until.Truncate(time.Hour); !until.After(from) {
		return lacking, nil
	}
	here, err := r.store.Hours(ctx, from, until)
	if err != nil {
		return nil, err
	}
	there, err := source.Hours(ctx, from, until)
	for at, hour := range there {
		if rows := here[at].Rows; hour.Rows > rows {
			lacking[at.Truncate(utcDay)] += hour.Rows - rows
		}
	}
	return lacking, err
}

// sameReplica is a replica that writes nothing once its server was emptied: an own consumer group feeds it from then on.
type sameReplica struct {
	*clickhouse.Store

	id string
}

// check returns an error if the replica is another one. A server alone is always the same.
func (s sameReplica) check(ctx context.Context, write func() error) error {
	if s.Config.Position > 0 {
		if err := s.Is(ctx, s.id); err != nil {
			return err //nolint:wrapcheck // the store's own
		}
	}
	return write()
}

// Insert implements refill.Target and heal.Store.
func (s sameReplica) Insert(ctx context.Context, token string, rows []clickdb.Row) error {
	return s.check(ctx, func() error { return s.Store.Insert(ctx, token, rows) })
}

// Advance implements refill.Target.
func (s sameReplica) Advance(ctx context.Context, marks []watermarks.Watermark) error {
	return s.check(ctx, func() error { return s.Store.Advance(ctx, marks) })
}

// AdoptSums implements refill.Target.
func (s sameReplica) AdoptSums(ctx context.Context, batch string, day time.Time) error {
	return s.check(ctx, func() error { return s.Store.AdoptSums(ctx, batch, day) })
}

// RefilledDay implements refill.Target.
func (s sameReplica) RefilledDay(ctx context.Context, gap, day time.Time) error {
	return s.check(ctx, func() error { return s.Store.RefilledDay(ctx, gap, day) })
}

// Refilled implements refill.Target.
func (s sameReplica) Refilled(ctx context.Context, gap time.Time) error {
	return s.check(ctx, func() error { return s.Store.Refilled(ctx, gap) })
}

// RebuildDay implements heal.Store.
func (s sameReplica) RebuildDay(ctx context.Context, day, now time.Time) error {
	return s.check(ctx, func() error { return s.Store.RebuildDay(ctx, day, now) })
}

// RebuildOpen implements heal.Store.
func (s sameReplica) RebuildOpen(ctx context.Context, day, complete, now time.Time, wait func(context.Context) error) error {
	return s.check(ctx, func() error { return s.Store.RebuildOpen(ctx, day, complete, now, wait) })
}

// Journal implements heal.Store.
func (s sameReplica) Journal(ctx context.Context, entries []reconcile.Entry) error {
	return s.check(ctx, func() error { return s.Store.Journal(ctx, entries) })
}
