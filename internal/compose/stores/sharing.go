package stores

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"curt/internal/abuse/signals"
	"curt/internal/backend/limitrows"
	"curt/internal/backend/redis"
	"curt/internal/cache"
	"curt/internal/compose"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/settings"
	"curt/internal/telemetry"
)

// openRedis opens what this server shares with others besides the stores, where CURT_CACHE says
// so. It connects when the server runs: a Redis that is down does not stop a start.
func (s *Stores) openRedis(c *compose.Capability) error {
	if s.env.Config.Cache == "" {
		return nil
	}
	// Not more than a name: servers over other links may use the same Redis.
	name, err := s.Derive("curt redis namespace")
	if err != nil {
		return err
	}
	key, err := s.Derive("curt redis buckets")
	if err != nil {
		return err
	}
	s.Redis, err = redis.New(redis.Config{URL: s.env.Config.Cache, Namespace: hex.EncodeToString(name[:6]), Key: key, Log: s.env.Log})
	if err != nil {
		return settings.WrongCache(s.env.Config, err)
	}
	c.OnClose(s.Redis.Close)
	c.Run("redis", s.Redis.Run)
	c.Need("redis", false, func() error { return errors.Join(s.Redis.Healthy(), s.Redis.Refused()) })
	return nil
}

// publisher publishes the changes of a server without a cache: a worker that stops links.
type publisher struct {
	redis   *redis.Client
	changes chan link.Change
}

// announce does not wait: what finds no room is in the change log.
func (t *publisher) announce(c link.Change) {
	select {
	case t.changes <- c:
	default:
	}
}

// Run tells until ctx ends. What Redis does not take is in the change log, too.
func (t *publisher) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-t.changes:
			_ = t.redis.Publish(ctx, cache.Note{Changes: []link.Change{c}})
		}
	}
}

// NewLimits opens limits of one kind that all servers share and that survive a restart: in Redis, or
// else in the store of accounts. Each server has its own besides, for when Redis is unavailable. A
// flood of one kind makes no limit of another forget.
func (s *Stores) NewLimits(ctx context.Context, c *compose.Capability, kind string) (ratelimit.Store, error) {
	if s.Redis != nil {
		f := ratelimit.NewFallback(s.Redis.Limiter(), ratelimit.NewMemory())
		s.alone = append(s.alone, f.Alone)
		return f, nil
	}
	key, err := s.BucketKey()
	if err != nil {
		return nil, err
	}
	d := ratelimit.OpenDurable(ctx, ratelimit.DurableConfig{
		Key: key, Ledger: limitrows.NewLedger(s.Accounts.Database, kind, s.env.Shared()), Shared: s.env.Shared(), Log: s.env.Log,
	})
	c.Run("limits of "+kind, d.Run)
	return d, nil
}

// NewThrottle returns a limit of visitors, which servers with one Redis grant together. It is not
// stored: its buckets are soon full.
func (s *Stores) NewThrottle(c *compose.Capability, kind string, limit *ratelimit.Limit) *ratelimit.Throttle {
	if limit == nil {
		return nil
	}
	if s.Redis == nil {
		return ratelimit.NewThrottle(*limit, nil, time.Now())
	}
	t := ratelimit.NewThrottle(*limit, s.Redis.Ledger(kind), time.Now())
	c.Run("limit of "+kind, t.Run)
	return t
}

// ShareRate has the signal count the links of all servers: in Redis, or else in the store of accounts.
func (s *Stores) ShareRate(c *compose.Capability, r *signals.Rate) error {
	key, err := s.BucketKey()
	if err != nil {
		return err
	}
	share := signals.RateShare{Key: key, Log: s.env.Log}
	if s.Redis != nil {
		share.Tally = s.Redis.Ledger("creators")
	} else {
		share.Tally = limitrows.NewTally(s.Accounts.Database)
	}
	r.Share(share)
	c.Run("velocity", r.Run)
	return nil
}

// BucketKey hashes the names of buckets alike on all servers over the same links.
func (s *Stores) BucketKey() (ratelimit.HashKey, error) {
	secret, err := s.Derive("curt rate limits")
	if err != nil {
		return ratelimit.HashKey{}, err
	}
	return ratelimit.NewHashKey(secret), nil
}

// countRedis offers the counters of what is shared.
func (s *Stores) countRedis(m *telemetry.Metrics) {
	m.Gauge("curt_redis_up", "1 while Redis is in use; 0 while it fails or times out.", func() float64 {
		if s.Redis.Healthy() != nil {
			return 0
		}
		return 1
	})
	m.Counter("curt_redis_timeouts_total", "Redis commands that timed out.", func() uint64 { return s.Redis.Stats().Timeouts })
	m.Counter("curt_redis_failures_total", "Redis commands that failed or lost their connection.", func() uint64 { return s.Redis.Stats().Failures })
	m.Counter("curt_redis_refused_total", "Redis commands skipped because earlier ones failed.", func() uint64 { return s.Redis.Stats().Refused })
	m.Counter("curt_redis_unreadable_total", "Redis entries and messages that this release cannot read.", func() uint64 { return s.Redis.Stats().Unreadable })
	m.Counter("curt_limits_alone_total", "Rate limit charges decided locally because Redis was unavailable or had lost its state.", func() (n uint64) {
		for _, count := range s.alone {
			n += count()
		}
		return n
	})
}
