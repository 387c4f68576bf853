// Package stores opens the stores of links, of accounts and of secrets, each chosen by itself, with
// the cache in front of links and what servers share in Redis.
package stores

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"strconv"
	"sync/atomic"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/postgres/replicas"
	"curt/internal/backend/redis"
	"curt/internal/cache/issued"
	"curt/internal/codegen"
	"curt/internal/codegen/keypool"
	"curt/internal/compose"
	"curt/internal/config"
	"curt/internal/datafolder"
	"curt/internal/joblease"
	"curt/internal/link"
	"curt/internal/pending"
	"curt/internal/telemetry"
)

// Stores are where a server keeps what it must not lose.
type Stores struct {
	Links    link.Backend
	Creates  link.CreateLog // of Links
	Feeds    Feeds          // of Links
	Keyring  Keyring
	Leases   codegen.Leaser
	Keys     keypool.Store // nil = the store keeps none
	Accounts Accounts
	Senders  ClickSenders      // nil = no other server counts clicks
	Redis    *redis.Client     // nil = CURT_CACHE is unset
	Pending  *pending.View     // nil = CURT_WRITES=sync, or links are neither created nor followed here
	Promised *codegen.Promised // with Pending: which codes were perhaps generated
	CodeKey  [32]byte

	env      *compose.Env
	accepted func(*link.Link) // set by OpenCache, as ended
	ended    func(link.Key)
	safety   func(*link.Link) link.Safety // set by Judge; what bans want of a link
	stored   func(link.ID)
	issued   atomic.Pointer[issued.Codes] // nil = not yet, or never
	beside   coldsql.Accounts             // in the database of links
	replicas func() replicas.Stats        // nil = look-ups have no standbys
	alone    []func() uint64              // how often limits were decided without Redis
}

// Open opens the stores that are set. stored is called with each new link once it is durable.
func Open(ctx context.Context, env *compose.Env, stored func(link.ID)) (*Stores, *compose.Capability, error) {
	s, c := &Stores{env: env, stored: stored}, &compose.Capability{Name: "stores"}
	if err := s.open(ctx, c); err != nil {
		return nil, c, err
	}
	c.Metrics = s.count
	c.Run("links", s.Links.Run)
	// A server that only follows links goes on without a store that takes writes, as long as it
	// hears what others change.
	c.Need("links", env.Roles.Writes(), s.Links.Healthy)
	return s, c, nil
}

// neverIssued reports whether the links are known to have had no code ever.
func (s *Stores) neverIssued(code link.Code) bool {
	known := s.issued.Load()
	return known != nil && known.Never(code)
}

func (s *Stores) open(ctx context.Context, c *compose.Capability) (err error) {
	switch {
	case s.env.Config.Links == config.SQLite:
		err = s.openSQLite(ctx, c)
	case config.IsDynamoDB(s.env.Config.Links):
		err = s.openDynamoDB(ctx, c)
	default:
		err = s.openPostgres(ctx, c)
	}
	if err != nil {
		return err
	}
	if s.CodeKey, err = s.Keyring.CodeKey(ctx); err != nil {
		return err
	}
	if s.env.Shared() && (s.env.Roles.API || s.env.Roles.Keys) {
		if s.Leases, err = s.floor(ctx); err != nil {
			return err
		}
	}
	if err = s.openAccounts(ctx, c); err != nil {
		return err
	}
	return s.openRedis(c)
}

// count registers the counters of stores. Each is read when it is scraped.
func (s *Stores) count(m *telemetry.Metrics) {
	if s.env.Roles.Serves() {
		s.countDamage(m)
	}
	if s.replicas != nil {
		s.countReplicas(m)
	}
	if s.Redis != nil {
		s.countRedis(m)
	}
}

// Derive makes a key for one purpose out of the store's key, so that cursors stay
// good over restarts without a secret of their own.
func (s *Stores) Derive(purpose string) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, s.CodeKey[:], nil, purpose, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive the key of %s: %w", purpose, err)
	}
	return key, nil
}

// Once has a loop run on one server of a fleet at a time.
func (s *Stores) Once(name string, run func(context.Context) error) func(context.Context) error {
	if !s.env.Shared() {
		return run
	}
	return func(ctx context.Context) error {
		once, err := s.Lease()
		if err != nil {
			return err
		}
		once.Name = name
		return once.Run(ctx, func(ctx context.Context, _ uint64) error { return run(ctx) }) // what it writes is idempotent
	}
}

// Lease returns what runs a job on one server of a fleet at a time; its user names the job.
func (s *Stores) Lease() (joblease.Once, error) {
	holder, err := s.Holder()
	return joblease.Once{Store: s.Accounts.Leases, Holder: holder, Log: s.env.Log}, err
}

// Holder returns the name by which this server holds leases. Only a server of a fleet has a name of its
// own: the file of the name says that the links of its folder are in a database.
func (s *Stores) Holder() (string, error) {
	if !s.env.Shared() {
		return "server", nil
	}
	return datafolder.Instance(s.env.Config.Data)
}

// countDamage offers what was found damaged; stores that check rows themselves have nothing.
func (s *Stores) countDamage(m *telemetry.Metrics) {
	l, ok := s.Links.(interface{ Damaged() (int, string) })
	if !ok {
		return
	}
	m.Gauge("curt_links_damaged", "Damaged links found since the start, up to 1,000.", func() float64 {
		n, _ := l.Damaged()
		return float64(n)
	})
}

// countReplicas offers how look-ups are shared with standbys.
func (s *Stores) countReplicas(m *telemetry.Metrics) {
	stats := s.replicas
	m.Gauge("curt_replicas", "Standbys configured in CURT_LINKS_REPLICAS.", func() float64 { return float64(len(stats().Lags)) })
	m.Gauge("curt_replicas_usable", "Standbys in use: available, and lagging by at most CURT_LINKS_REPLICA_LAG.",
		func() float64 { return float64(stats().Usable) })
	m.Counter("curt_replica_lookups_total", "Look-ups answered by a standby.", func() uint64 { return stats().Answered })
	m.Counter("curt_replica_confirmed_total", "Look-ups repeated on the primary because the standby did not have the link or the link has max_clicks.",
		func() uint64 { return stats().Confirmed })
	m.Counter("curt_replica_failures_total", "Look-ups repeated on the primary because the standby failed or timed out.",
		func() uint64 { return stats().Failed })
	for i := range s.env.Config.LinksReplicas {
		m.GaugeOf("curt_replica_lag_seconds", "Upper bound of a standby's lag, by its position in CURT_LINKS_REPLICAS; since the start if it was never available.",
			"replica", strconv.Itoa(i+1), func() float64 { return stats().Lags[i].Seconds() })
	}
}
