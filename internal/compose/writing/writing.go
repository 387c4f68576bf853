// Package writing opens the role writer: it brings the links of CURT_WRITES=queued from Kafka into the link store.
package writing

import (
	"context"
	"math"
	"time"

	"curt/internal/compose"
	"curt/internal/compose/judging"
	"curt/internal/compose/stores"
	"curt/internal/link"
	"curt/internal/telemetry"
	"curt/internal/writer"
)

// session is how long the partitions of a writer that was killed wait for another one: the least that Kafka allows.
const session = 6 * time.Second

// Open has queued links written, on a server with the role writer. What was decided about a link while it waited takes effect
// before its offset is committed.
func Open(env *compose.Env, s *stores.Stores, judges *judging.Judging) (*compose.Capability, error) {
	c := &compose.Capability{Name: "writer"}
	if !env.Roles.Writer {
		return c, nil
	}
	w := writer.New(writer.Config{
		Kafka: *env.Queue, Session: session, Store: s.Links, Rate: env.Config.WritesRate, BeginWrite: judges.Moderator.BeginWrite, Logger: env.Log,
		Recheck: func(ctx context.Context, now time.Time, l *link.Link) error {
			if _, banned := judges.Moderator.BanOf(l); banned {
				if _, err := judges.Moderator.Apply(ctx, now, l.Key); err != nil {
					return err //nolint:wrapcheck // says what it did
				}
			}
			return judges.Links.RecheckOne(ctx, now, l)
		},
	})
	c.Run("writer", w.Run)
	c.Need("writer", false, w.Healthy)
	c.Metrics = func(m *telemetry.Metrics) { count(m, w) }
	return c, nil
}

func count(m *telemetry.Metrics, w *writer.Writer) {
	m.Counter("curt_writer_links_total", "Queued links written to the link store; one that is written again counts again.", func() uint64 { return w.Stats().Written })
	m.Counter("curt_writer_batches_total", "Batches of queued links written.", func() uint64 { return w.Stats().Batches })
	m.Counter("curt_writer_failures_total", "Failed reads and writes of queued links, each retried.", func() uint64 { return w.Stats().Failures })
	m.Counter("curt_writer_dead_letters_total", "Queued links that can never be written, moved to the dead letter topic.", func() uint64 { return w.Stats().Dead })
	m.Counter("curt_writer_sessions_total", "Times that this writer joined its consumer group.", func() uint64 { return w.Stats().Sessions })
	m.Gauge("curt_writer_partitions", "Partitions of the queue assigned to this writer.", func() float64 { return float64(w.Stats().Partitions) })
	m.Gauge("curt_writer_held_partitions", "Partitions of this writer that wait because their next link was queued by a newer release.", func() float64 { return float64(w.Stats().Held) })
	m.Gauge("curt_writer_lag_links", "Consumer lag of the whole queue, also of partitions that other writers or none have: links that are not written. NaN while it is unknown.", func() float64 {
		if s := w.Stats(); s.Measured {
			return float64(s.Lag)
		}
		return math.NaN()
	})
	m.Gauge("curt_writer_lag_seconds", "Time since the oldest link was created that this writer has read and not written; 0 where nothing in the queue waits, NaN while it is unknown.", func() float64 {
		switch s := w.Stats(); {
		case !s.Oldest.IsZero():
			return max(0, time.Since(s.Oldest).Seconds())
		case s.Measured && s.Lag == 0:
			return 0
		}
		return math.NaN()
	})
}
