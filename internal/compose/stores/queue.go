package stores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"curt/internal/backend/kafka"
	"curt/internal/backend/redis"
	"curt/internal/codegen"
	"curt/internal/compose"
	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/pending"
	"curt/internal/settings"
	"curt/internal/telemetry"
)

// OpenPending has new links go into the queue of CURT_WRITES=queued, on a server that creates links, and pending links of all servers
// be found, also on one that only follows them.
func OpenPending(ctx context.Context, env *compose.Env, s *Stores) (*compose.Capability, error) {
	c := &compose.Capability{Name: "pending links"}
	if !env.Config.Queues() {
		return c, nil
	}
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
	s.accepted, s.ended, s.safety = func(*link.Link) {}, func(link.Key) {}, func(*link.Link) link.Safety { return 0 }
	s.Pending = &pending.View{Perhaps: s.Promised.Perhaps, Safety: func(l *link.Link) link.Safety { return s.safety(l) }}
	if s.Redis != nil { // a nil client must not become an interface
		s.Pending.Shared = redis.NewPending(s.Redis)
	}
	if !env.Roles.API {
		return c, nil
	}
	return c, s.openQueue(ctx, c)
}

// Judge has bans hold for pending links: safety returns what they want of a link.
func (s *Stores) Judge(safety func(*link.Link) link.Safety) { s.safety = safety }

// openQueue has new links go into the queue. It refuses a topic that acknowledges what one broker alone has. A Kafka that is unavailable
// keeps no server from starting: creates are 503 until it was asked.
func (s *Stores) openQueue(ctx context.Context, c *compose.Capability) error {
	env := s.env
	log := kafka.NewQueuedLinks(*env.Queue)
	c.OnClose(func() error { log.Close(); return nil })
	checked := &checkedLog{QueuedLinks: log, acceptLoss: env.Config.WritesLoss}
	if err := checked.check(ctx); err != nil {
		if checked.refuses(err) {
			return &config.Error{Setting: "CURT_WRITES", Value: env.Config.Writes, Want: settings.OneLine(err).Error() + checked.advice(err)}
		}
		env.Log.WarnContext(ctx, "checking the topic of queued links failed, retrying", slog.Any("err", err))
	}
	c.Run("queue check", func(ctx context.Context) error { return checked.run(ctx, env.Log) })
	c.Need("queue", !env.Roles.Redirects, checked.healthy)
	s.Pending.Own = pending.New(pending.Config{
		Log: checked, Store: s.Links, Shared: s.Pending.Shared, Logger: env.Log,
		Accepted: func(l *link.Link) { s.accepted(l) },
		Ended:    func(k link.Key) { s.ended(k) },
	})
	c.Run("pending links", s.Pending.Own.Run)
	c.Metrics = s.countPending
	return nil
}

// usesSnowflake reports whether codes, or the keys of a pool, are those of Snowflake.
func usesSnowflake(env *compose.Env) bool {
	return env.Config.Codes == "snowflake" || env.Config.Codes == config.CodesPool && env.Config.PoolKeys == "snowflake"
}

func (s *Stores) countPending(m *telemetry.Metrics) {
	m.Gauge("curt_pending_links", "Links that this server accepted and that are not written yet.", func() float64 { return float64(s.Pending.Own.Stats().Pending) })
	m.Gauge("curt_pending_bytes", "Memory of pending links; at 64 MiB creates are refused.", func() float64 { return float64(s.Pending.Own.Stats().Bytes) })
	m.Gauge("curt_pending_seconds", "Time since the oldest pending link of this server was accepted; 0 while none is pending.", func() float64 {
		if at := s.Pending.Own.Stats().Oldest; !at.IsZero() {
			return max(0, time.Since(at).Seconds())
		}
		return 0
	})
	m.Counter("curt_pending_accepted_total", "Links put into the queue.", func() uint64 { return s.Pending.Own.Stats().Accepted })
	m.Counter("curt_pending_refused_total", "Creates refused because too many links were pending.", func() uint64 { return s.Pending.Own.Stats().Refused })
}

// checkedLog is the queue while its topic is known to be safe, and there.
type checkedLog struct {
	*kafka.QueuedLinks

	acceptLoss   bool
	state        atomic.Pointer[checkState]
	acknowledged atomic.Uint64 // appends that succeeded
}

type checkState struct{ err error }

const (
	// checkEvery is how often Kafka is asked whether it is there. It is a question of two small requests; without it the first create
	// after Kafka went away would wait for it, and each at the same time.
	checkEvery = 2 * time.Second
	checkRetry = time.Second
	// checkPatience is how long Kafka may take to answer, also at the start.
	checkPatience = 3 * time.Second
)

// Append implements pending.Log.
func (q *checkedLog) Append(ctx context.Context, records []pending.Record) ([]pending.Location, error) {
	if err := q.healthy(); err != nil {
		return nil, link.Unavailable(fmt.Errorf("queue of links: %w", err))
	}
	at, err := q.QueuedLinks.Append(ctx, records)
	if err == nil {
		q.acknowledged.Add(1)
	}
	return at, err //nolint:wrapcheck // says what it did
}

// check asks Kafka for the topic. Where it does not answer creates are refused at once from then on, and what is on its way is given up;
// a cluster that acknowledged something meanwhile is busy.
func (q *checkedLog) check(ctx context.Context) error {
	before := q.acknowledged.Load()
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	err := q.Check(ctx)
	switch {
	case errors.Is(err, kafka.ErrUnsafe) && q.acceptLoss:
		err = nil
	case err == nil || q.refuses(err):
	case q.acknowledged.Load() != before:
		return nil
	default:
		q.Reset()
	}
	q.state.Store(&checkState{err})
	return err
}

// refuses reports whether Kafka answered, and the topic will not do.
func (q *checkedLog) refuses(err error) bool {
	return errors.Is(err, kafka.ErrUnsafe) || errors.Is(err, kafka.ErrNoTopic)
}

func (q *checkedLog) advice(err error) string {
	if errors.Is(err, kafka.ErrUnsafe) {
		return "; " + settings.AllowQueue
	}
	return ""
}

func (q *checkedLog) healthy() error {
	if state := q.state.Load(); state != nil {
		return state.err
	}
	return link.Unavailable(errors.New("no answer of Kafka yet"))
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
