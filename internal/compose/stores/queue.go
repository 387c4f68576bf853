package stores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"curt/internal/backend/kafka"
	"curt/internal/codegen"
	"curt/internal/compose"
	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/pending"
	"curt/internal/settings"
	"curt/internal/telemetry"
)

// OpenPending has new links go into the queue of CURT_WRITES=queued, on a server that creates links. It refuses a topic that
// acknowledges what one broker alone has. A Kafka that is unavailable keeps no server from starting: creates are 503
// until it was asked.
func OpenPending(ctx context.Context, env *compose.Env, s *Stores) (*compose.Capability, error) {
	c := &compose.Capability{Name: "pending links"}
	if !env.Roles.API || !env.Config.Queues() {
		return c, nil
	}
	log := kafka.NewQueuedLinks(*env.Queue)
	c.OnClose(func() error { log.Close(); return nil })
	checked := &checkedLog{QueuedLinks: log, at: *env.Queue, acceptLoss: env.Config.WritesLoss}
	first, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	if err := checked.check(first); err != nil {
		if checked.refuses(err) {
			return c, &config.Error{Setting: "CURT_WRITES", Value: env.Config.Writes, Want: settings.OneLine(err).Error() + checked.advice(err)}
		}
		env.Log.WarnContext(ctx, "checking the topic of queued links failed, retrying", slog.Any("err", err))
	}
	c.Run("queue check", func(ctx context.Context) error { return checked.run(ctx, env.Log) })
	c.Need("queue", !env.Roles.Redirects, checked.healthy)
	s.Promised = codegen.NewPromised(codegen.PromisedConfig{
		Permutation: codegen.NewPermutation(s.CodeKey), Snowflake: usesSnowflake(env), Plain: env.Config.Snowflake == "plain", Now: time.Now,
		Mark: func(ctx context.Context) (uint64, error) {
			return s.Leases.Leased(ctx, codegen.Counter(codegen.DefaultPrefix, env.Config.CodeLength))
		},
		Length: env.Config.CodeLength, Log: env.Log,
	})
	if err := s.Promised.Refresh(ctx); err != nil {
		return c, fmt.Errorf("read leased ids: %w", err)
	}
	c.Run("generated codes", s.Promised.Run)
	s.accepted, s.ended = func(context.Context, *link.Link) {}, func(link.Key) {}
	s.Pending = pending.New(pending.Config{
		Log: checked, Store: s.Links, Logger: env.Log,
		Accepted: func(ctx context.Context, l *link.Link) { s.accepted(ctx, l) },
		Ended:    func(k link.Key) { s.ended(k) },
	})
	c.Run("pending links", s.Pending.Run)
	c.Metrics = s.countPending
	return c, nil
}

// usesSnowflake reports whether codes, or the keys of a pool, are those of Snowflake.
func usesSnowflake(env *compose.Env) bool {
	return env.Config.Codes == "snowflake" || env.Config.Codes == config.CodesPool && env.Config.PoolKeys == "snowflake"
}

func (s *Stores) countPending(m *telemetry.Metrics) {
	m.Gauge("curt_pending_links", "Links that this server accepted and that are not written yet.", func() float64 { return float64(s.Pending.Stats().Pending) })
	m.Gauge("curt_pending_bytes", "Memory of pending links; at 64 MiB creates are refused.", func() float64 { return float64(s.Pending.Stats().Bytes) })
	m.Gauge("curt_pending_seconds", "Time since the oldest pending link of this server was accepted; 0 while none is pending.", func() float64 {
		if at := s.Pending.Stats().Oldest; !at.IsZero() {
			return max(0, time.Since(at).Seconds())
		}
		return 0
	})
	m.Counter("curt_pending_accepted_total", "Links put into the queue.", func() uint64 { return s.Pending.Stats().Accepted })
	m.Counter("curt_pending_refused_total", "Creates refused because too many links were pending.", func() uint64 { return s.Pending.Stats().Refused })
}

// checkedLog is the queue once its topic is known to be safe.
type checkedLog struct {
	*kafka.QueuedLinks

	at         kafka.Config
	acceptLoss bool
	state      atomic.Pointer[checkState]
}

type checkState struct{ err error }

const (
	checkEvery = time.Minute
	checkRetry = time.Second
	// checkPatience is how long a start waits for Kafka.
	checkPatience = 3 * time.Second
)

// Append implements pending.Log.
func (q *checkedLog) Append(ctx context.Context, records []pending.Record) ([]pending.Location, error) {
	if err := q.healthy(); err != nil {
		return nil, fmt.Errorf("%w: %w", link.ErrUnavailable, err)
	}
	return q.QueuedLinks.Append(ctx, records) //nolint:wrapcheck // says what it did
}

func (q *checkedLog) check(ctx context.Context) error {
	err := q.at.Safe(ctx)
	if errors.Is(err, kafka.ErrUnsafe) && q.acceptLoss {
		err = nil
	}
	// A cluster that was found safe is not doubted because it cannot be asked: what it does not acknowledge fails by itself.
	if before := q.state.Load(); err == nil || q.refuses(err) || before == nil || before.err != nil {
		q.state.Store(&checkState{err})
	}
	return err
}

// refuses reports whether Kafka answered, and the topic will not do.
func (q *checkedLog) refuses(err error) bool {
	return errors.Is(err, kafka.ErrUnsafe) || errors.Is(err, kafka.ErrNoTopic)
}

func (q *checkedLog) advice(err error) string {
	if errors.Is(err, kafka.ErrUnsafe) {
		return "; use three brokers and min.insync.replicas=2, or accept losses with CURT_WRITES_ACCEPT_LOSS=true"
	}
	return ""
}

func (q *checkedLog) healthy() error {
	if state := q.state.Load(); state != nil {
		return state.err
	}
	return link.ErrUnavailable
}

// run looks at the topic again and again until ctx ends.
func (q *checkedLog) run(ctx context.Context, log *slog.Logger) error {
	return compose.Retry(ctx, log, slog.LevelError, "checking the topic of queued links failed, retrying", "the topic of queued links recovered",
		func(ctx context.Context) (time.Duration, error) {
			if err := q.check(ctx); err != nil {
				return checkRetry, err
			}
			return checkEvery, nil
		})
}
