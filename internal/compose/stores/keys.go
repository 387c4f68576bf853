package stores

import (
	"context"
	"log/slog"
	"math"

	"curt/internal/codegen"
	"curt/internal/codegen/keypool"
	"curt/internal/compose"
	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/telemetry"
)

// OpenKeys keeps the pool of CURT_CODES=pool filled, on a server with the role keys. On one that also creates links it comes
// before OpenCodes, so that the first create finds keys.
func OpenKeys(ctx context.Context, env *compose.Env, s *Stores) (*compose.Capability, error) {
	c := &compose.Capability{Name: "keys"}
	if !env.Roles.Keys {
		return c, nil
	}
	if err := s.keepsKeys(); err != nil {
		return c, err
	}
	pool := poolOf(env)
	keys, err := pool.maker(env, s, c)
	if err != nil {
		return c, err
	}
	f := keypool.NewFiller(keypool.FillerConfig{Store: s.Keys, Pool: pool.name, Keys: keys, Depth: env.Config.PoolSize, Log: env.Log})
	if _, err := f.Step(ctx); err != nil {
		env.Log.WarnContext(ctx, "filling the pool of keys failed, retrying", slog.Any("err", err))
	}
	c.Run("pool", f.Run)
	c.Count(func(m *telemetry.Metrics) {
		m.Counter("curt_keys_generated_total", "Keys that this server put into the pool.", func() uint64 { return f.Stats().Generated })
		m.Counter("curt_key_fill_failures_total", "Failed attempts of this server to fill the pool of keys.", func() uint64 { return f.Stats().Failures })
		if !env.Roles.API { // else OpenCodes does
			countLevel(m, f.Level)
		}
	})
	return c, nil
}

// keepsKeys refuses a link store without pools of keys.
func (s *Stores) keepsKeys() error {
	if s.Keys == nil {
		return &config.Error{Setting: "CURT_CODES", Value: config.CodesPool, Want: "the store of CURT_LINKS keeps no keys; use another value"}
	}
	return nil
}

// keyPool says which keys CURT_CODES=pool uses. Each kind of keys has a pool of its own, so that a changed setting never
// meets keys of another.
type keyPool struct {
	name  string
	kind  link.CodeKind
	maker func(env *compose.Env, s *Stores, c *compose.Capability) (codegen.Generator, error)
}

func poolOf(env *compose.Env) keyPool {
	if env.Config.PoolKeys == "snowflake" {
		return keyPool{"snowflake-" + env.Config.Snowflake, link.Chosen, func(env *compose.Env, s *Stores, c *compose.Capability) (codegen.Generator, error) {
			return newSnowflake(env, s, c)
		}}
	}
	return keyPool{codegen.Counter(codegen.DefaultPrefix, env.Config.CodeLength), link.Counted, func(env *compose.Env, s *Stores, c *compose.Capability) (codegen.Generator, error) {
		return newRange(env, s, c)
	}}
}

// openPool takes keys from the pool.
func openPool(ctx context.Context, env *compose.Env, s *Stores, c *compose.Capability) (codegen.Generator, error) {
	if err := s.keepsKeys(); err != nil {
		return nil, err
	}
	holder, err := s.Holder()
	if err != nil {
		return nil, err
	}
	of := poolOf(env)
	cfg := keypool.Config{Store: s.Keys, Pool: of.name, Holder: holder, Kind: of.kind, Log: env.Log}
	if of.kind == link.Counted {
		cfg.Exhausted = func(ctx context.Context) (bool, error) {
			mark, err := s.Leases.Leased(ctx, of.name)
			return mark >= codegen.Space(env.Config.CodeLength), err
		}
	}
	p := keypool.New(cfg)
	if err := p.Start(ctx); err != nil {
		env.Log.WarnContext(ctx, "taking keys from the pool failed, retrying", slog.Any("err", err))
	}
	c.Run("codes", p.Run)
	c.Need("keys", false, p.Healthy)
	c.Count(func(m *telemetry.Metrics) {
		countLeases(m, func() uint64 { return p.Stats().Inline }, func() uint64 { return p.Stats().Failures + p.Stats().Empty })
		m.Gauge("curt_keys_in_memory", "Keys of CURT_CODES=pool in the memory of this server.", func() float64 { return float64(p.Stats().Keys) })
		countLevel(m, p.Level)
	})
	return p, nil
}

// countLevel registers the figures of the pool, which are the same at all servers.
func countLevel(m *telemetry.Metrics, level func() (keypool.Level, bool)) {
	gauge := func(name, help string, of func(keypool.Level) float64) {
		m.Gauge(name, help, func() float64 {
			if l, ok := level(); ok {
				return of(l)
			}
			return math.NaN()
		})
	}
	gauge("curt_key_pool_keys", "Unused keys in the pool; NaN while the link store is unavailable.", func(l keypool.Level) float64 { return float64(l.Unused) })
	gauge("curt_key_pool_held_keys", "Keys in batches that servers have in memory.", func(l keypool.Level) float64 { return float64(l.Held) })
	gauge("curt_key_pool_leaked_keys", "Keys that no link will have: they were in the memory of servers that were killed. Counted by the batch of 1,000: up to 999 more for each kill, which links have.", func(l keypool.Level) float64 { return float64(l.Leaked) })
	gauge("curt_key_pool_runway_seconds", "How long the pool lasts without the role keys at the rate at which creates used keys in the last minute; +Inf while they use none.", func(l keypool.Level) float64 {
		if d, ok := l.Runway(); ok {
			return d.Seconds()
		}
		return math.Inf(1)
	})
}
