package stores

import (
	"context"
	"errors"
	"time"

	"curt/internal/backend/dynamodb"
	"curt/internal/cache"
	"curt/internal/cache/issued"
	"curt/internal/codegen"
	"curt/internal/compose"
	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/redirect"
	"curt/internal/telemetry"
)

// Cache is L1 in front of the links.
type Cache struct {
	*cache.Tiered

	stores  *Stores
	issued  *issued.Codes // nil = CURT_CODE_FILTER=redis
	changes *Changes
}

// soleFresh is how long a link in use is served without a look-up in a store that no other process
// writes to. Every change is announced here, so that the question only makes good for a
// fault; after five minutes, as with others, 100,000 hot links asked 333 a second, a third of
// the CPU time while they did.
const soleFresh = time.Hour

// pendingMissing is how long a code is believed unknown while links are written later.
const pendingMissing = time.Second

// OpenCache puts L1 in front of the links. Changes are announced to it from then on.
func OpenCache(env *compose.Env, s *Stores, changes *Changes) (*Cache, *compose.Capability, error) {
	mark := func(ctx context.Context, length int) (uint64, error) {
		return s.Leases.Leased(ctx, codegen.Counter(codegen.DefaultPrefix, length))
	}
	c := &Cache{stores: s, changes: changes}
	if env.Config.CodeFilter != "redis" {
		c.issued = issued.New(s.Links, codegen.NewCounts(codegen.NewPermutation(s.CodeKey), mark))
		s.issued.Store(c.issued)
	}
	cfg := cache.Config{Bytes: uint64(env.Config.CacheSize), Issued: c.issued, Admit: redirect.NewLoopGuard(env.Hosts), Shared: env.Shared(), OnChanges: changes.heard, Log: env.Log}
	if !cfg.Shared {
		cfg.Fresh = soleFresh
	}
	if len(env.Config.LinksReplicas) > 0 {
		cfg.Lag = env.Config.LinksReplicaLag + time.Second // for the look-up in flight
	}
	if config.IsDynamoDB(env.Config.Links) {
		cfg.Lag = dynamodb.MaxLag + time.Second
	}
	if env.Config.Lane == "on" {
		cfg.Prepare = redirect.NewPreparer(env.HSTS())
	}
	if s.Redis != nil { // a nil client must not become an interface
		cfg.L2, cfg.Bus = s.Redis, s.Redis
	}
	if env.Config.Queues() { // a code that is unknown now may have a link that is on its way
		cfg.Missing, cfg.Unwritten = pendingMissing, true
	}
	source := cache.Source(s.Links)
	if s.Pending != nil {
		source = s.Pending.Over(s.Links)
	}
	capability := &compose.Capability{Name: "cache", Metrics: c.count}
	var err error
	if c.Tiered, err = cache.New(cfg, source); err != nil {
		return nil, capability, err
	}
	if s.Pending != nil && s.Pending.Own != nil {
		s.accepted, s.ended = c.Accepted, c.Created
	}
	changes.announce = func(change link.Change) { c.Announce(change) } // the cache tells other servers
	capability.Run("cache", c.Run)
	if env.Shared() {
		capability.Run("changes", func(ctx context.Context) error { return c.Follow(ctx, s.Links, followEvery) })
		capability.Need("changes", true, func() error {
			if c.Staleness() > silence {
				return errSilence
			}
			return nil
		})
	}
	return c, capability, nil
}

// silence is how long the changes of others may go unheard: then links that they killed
// may live on in L1, and the server wants no traffic.
const silence = 5 * time.Second

var errSilence = errors.New("the change log has not been read for too long")

// countCache offers the counters of L1.
func (c *Cache) count(m *telemetry.Metrics) {
	m.Counter("curt_cache_loads_total", "Queries to the link store.", func() uint64 { return c.Stats().Loads })
	m.Counter("curt_cache_load_failures_total", "Failed queries to the link store.",
		func() uint64 { return c.Stats().Failures })
	m.Counter("curt_cache_stale_total", "Look-ups answered with a stale L1 entry because the store failed.",
		func() uint64 { return c.Stats().Stale })
	m.Counter("curt_cache_never_issued_total", "Look-ups of codes that were never issued, answered without the store.",
		func() uint64 { return c.Stats().Never })
	m.Counter("curt_cache_changes_total", "Changes of links announced.", func() uint64 { return c.Stats().Changes })
	m.Gauge("curt_cache_entries", "Links in L1.", func() float64 { return float64(c.Stats().Entries) })
	m.Gauge("curt_cache_bytes", "Bytes of L1.", func() float64 { return float64(c.Stats().Bytes) })
	if c.stores.Redis == nil {
		return
	}
	m.Counter("curt_cache_shared_hits_total", "Link look-ups found in Redis.", func() uint64 { return c.Stats().SharedHits })
	m.Counter("curt_cache_shared_misses_total", "Link look-ups not found in Redis, or timed out.", func() uint64 { return c.Stats().SharedMisses })
	m.Counter("curt_cache_shared_old_total", "Link look-ups in Redis that were possibly stale; the link store was queried.", func() uint64 { return c.Stats().SharedOld })
	m.Gauge("curt_bus_silent_seconds", "Time since the last Pub/Sub message; each server publishes one every second and receives its own.", func() float64 { return c.BusSilent().Seconds() })
	m.Counter("curt_cache_gaps_total", "Times that Pub/Sub skipped a change and the change log was read.", func() uint64 { return c.Stats().Gaps })
}
