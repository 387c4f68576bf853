package server

import (
	"context"
	"encoding/hex"

	"curt/internal/backend/redis"
	"curt/internal/cache"
	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/ratelimit"
)

// openSharing makes what this server shares with others besides the stores, where
// CURT_CACHE says so. It connects when the server runs: a Redis that is away keeps no
// server from starting.
func (s *Server) openSharing(context.Context) error {
	if s.config.Cache == "" {
		return nil
	}
	// Not more than a name: servers over other links may use the same Redis.
	name, err := s.derive("curt redis namespace")
	if err != nil {
		return err
	}
	key, err := s.derive("curt redis buckets")
	if err != nil {
		return err
	}
	s.redis, err = redis.New(redis.Config{URL: s.config.Cache, Namespace: hex.EncodeToString(name[:6]), Key: key, Log: s.log})
	if err != nil {
		return wrongCache(s.config, err)
	}
	s.closers = append(s.closers, s.redis.Close)
	if !s.roles.serves() {
		s.teller = &teller{redis: s.redis, changes: make(chan link.Change, 1024)}
	}
	return nil
}

// teller tells other servers what one without a cache changed: a worker that stops links.
type teller struct {
	redis   *redis.Client
	changes chan link.Change
}

// announce does not wait: what finds no room is in the change log.
func (t *teller) announce(c link.Change) {
	select {
	case t.changes <- c:
	default:
	}
}

// Run tells until ctx ends. What Redis does not take is in the change log, too.
func (t *teller) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-t.changes:
			_ = t.redis.Publish(ctx, cache.Note{Changes: []link.Change{c}})
		}
	}
}

// share puts what is shared behind L1.
func (s *Server) share(cfg *cache.Config) {
	if s.redis != nil { // else the interfaces would not be nil
		cfg.L2, cfg.Bus = s.redis, s.redis
	}
}

// newLimits makes a store of limits that all servers share, where they share something.
// Each has its own besides, for when the other cannot be asked, so that a flood in one
// part makes no limit of another forget.
func (s *Server) newLimits() ratelimit.Store {
	own := ratelimit.NewMemory()
	if s.redis == nil {
		return own
	}
	f := ratelimit.NewFallback(s.redis.Limiter(), own)
	s.alone = append(s.alone, f.Alone)
	return f
}

// countRedis offers the counters of what is shared.
func (s *Server) countRedis() {
	if s.redis == nil {
		return
	}
	m := s.metrics
	m.Gauge("curt_redis_up", "1 while Redis is asked; 0 while it does not answer, or not in time.", func() float64 {
		if s.redis.Healthy() != nil {
			return 0
		}
		return 1
	})
	m.Counter("curt_redis_timeouts_total", "Questions that Redis did not answer in time.", func() uint64 { return s.redis.Stats().Timeouts })
	m.Counter("curt_redis_failures_total", "Questions that Redis answered with an error, or lost with its connection.", func() uint64 { return s.redis.Stats().Failures })
	m.Counter("curt_redis_refused_total", "Questions not asked, because Redis did not answer those before.", func() uint64 { return s.redis.Stats().Refused })
	m.Counter("curt_redis_unreadable_total", "Entries and notes in Redis that this release cannot read.", func() uint64 { return s.redis.Stats().Unreadable })
	m.Counter("curt_limits_alone_total", "Charges that this server decided by itself, because Redis could not be asked or had forgotten.", func() (n uint64) {
		for _, count := range s.alone {
			n += count()
		}
		return n
	})
	if s.cache == nil {
		return
	}
	m.Counter("curt_cache_shared_hits_total", "Links that Redis had.", func() uint64 { return s.cache.Stats().SharedHits })
	m.Counter("curt_cache_shared_misses_total", "Links that Redis did not have, or not in time.", func() uint64 { return s.cache.Stats().SharedMisses })
	m.Counter("curt_cache_shared_old_total", "Links in Redis that the change log did not vouch for; the link store was asked.", func() uint64 { return s.cache.Stats().SharedOld })
	m.Gauge("curt_bus_silent_seconds", "Since anything came by Pub/Sub, where each server says something every second and hears itself.", func() float64 { return s.cache.BusSilent().Seconds() })
	m.Counter("curt_cache_gaps_total", "Times that the bus skipped a change, so that the change log was read.", func() uint64 { return s.cache.Stats().Gaps })
}

// cache asks the Redis server, which others may be using.
func (c *checker) cache(ctx context.Context, cfg config.Config) {
	if cfg.Cache == "" || c.told("CURT_CACHE") {
		return
	}
	what, err := redis.Probe(ctx, cfg.Cache)
	if err != nil {
		err = wrongCache(cfg, err)
	}
	c.add("CURT_CACHE="+config.Redact(cfg.Cache)+": "+what, err)
}

// checkCache reads the setting without asking anybody.
func checkCache(cfg config.Config) error {
	if cfg.Cache == "" {
		return nil
	}
	if err := redis.Check(cfg.Cache); err != nil {
		return wrongCache(cfg, err)
	}
	return nil
}

func wrongCache(cfg config.Config, err error) error {
	return &config.Error{Setting: "CURT_CACHE", Value: config.Redact(cfg.Cache), Want: err.Error()}
}
