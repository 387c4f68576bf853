package shorten

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/codegen"
	"curt/internal/idempotency"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/search"
	"curt/internal/weburl"
)

// Config is what [New] needs.
type Config struct {
	// Store may be a link.Deduper and a link.Batcher too; without them dedupe is
	// refused, and CreateMany must not be called.
	Store  link.Store
	Codes  codegen.Generator
	Limits ratelimit.Store

	// Dedupe is what requests without an alias mean that do not say whether to dedupe,
	// when they come with a key and the Store can.
	Dedupe bool

	// Once keeps what idempotency keys stand for; nil = requests with one are refused.
	Once idempotency.Store
	// Index finds links by words, tags and state; nil = such questions are answered
	// by ErrUnavailable.
	Index search.Index
	// Ranking knows the order of links by clicks; nil = as Index.
	Ranking search.Ranking

	// Own are the hosts of this service: no link may lead there.
	Own *weburl.Hosts
	// Blocklists name further hosts that no link may lead to; nil = none. Where there is
	// a Judge it asks them, and here they say which list it was.
	Blocklists *abuse.Blocklists
	// Words are the aliases that the operator keeps or refuses, and that generated codes
	// avoid; nil = none but Reserved.
	Words *abuse.Words
	// Judge decides about where a link is to lead. It asks memory alone and is safe for
	// many goroutines; nil = by the Blocklists.
	Judge func(ctx context.Context, now time.Time, f *abuse.Facts) abuse.Decision
	// Moderator knows the bans; nil = there are none.
	Moderator Moderator
	// Journal holds a decision before it takes effect. Only a Judge that finds nothing
	// but Clean and Blocked needs none.
	Journal Journal
	// Country returns where an address is, ISO 3166-1 alpha-2, "" = unknown; nil = nobody
	// knows.
	Country func(netip.Addr) string

	// Host is the name, with a port where it has one, of the default domain.
	// Domains are the further hosts that serve links. Both canonical.
	Host    link.Domain
	Domains []link.Domain

	// Plans bounds the creates of callers; nil = DefaultPlans.
	Plans Plans

	// Announce is called, after the write is durable, with each change that a
	// cache may not know: a code that the permutation did not make, and every
	// change of a link. Its Sequence is 0: only the store's change log numbers.
	// It must not block. Nil = nobody listens.
	Announce func(link.Change)

	// Created is called in the same way with the key of each new link whose code the
	// permutation made: a cache of this process may believe it unknown. Nil = nobody
	// listens.
	Created func(link.Key)

	// Made is called behind them with each new link as it was stored. It must not block.
	// Nil = nobody listens.
	Made func(link.Link)

	// Random is the source of link ids and salts, normally crypto/rand.Reader. It is
	// read by many goroutines.
	Random io.Reader

	// Metrics registers the package's counters; nil = they are kept to itself.
	Metrics prometheus.Registerer
}

// Cause is why a link is written.
type Cause struct {
	Principal auth.Principal // who asks

	// IdempotencyKey names the request, which may then be sent again without creating a
	// second link; "" = it has no name. At most idempotency.MaxKey bytes. Changes take none.
	IdempotencyKey string
}

// Services are the services of this package over one store, each of which may be used by itself.
// They are safe for many goroutines.
type Services struct {
	*Creator
	*Editor
	*Finder
	*rules
}

// New returns the services.
func New(cfg Config) *Services {
	cfg = withDefaults(cfg)
	counters := newMetrics(cfg.Metrics)
	allowed := &rules{
		own: cfg.Own, words: cfg.Words, imitated: imitated(),
		host: link.Domain(strings.ToLower(string(cfg.Host))), domains: map[link.Domain]struct{}{},
	}
	for _, d := range cfg.Domains {
		allowed.domains[d] = struct{}{}
	}
	judging := &court{
		lists: cfg.Blocklists, judge: cfg.Judge, moderator: cfg.Moderator, journal: cfg.Journal, country: cfg.Country,
		random: cfg.Random, metrics: counters,
	}
	creator := &Creator{
		store: cfg.Store, codes: cfg.Codes, limits: cfg.Limits, plans: cfg.Plans, rules: allowed, court: judging,
		announce: cfg.Announce, created: cfg.Created, made: cfg.Made, ids: link.NewIDs(cfg.Random),
		dedupes: cfg.Dedupe, claims: cfg.Once, attempts: newAttempts(), metrics: counters,
	}
	creator.dedupe, _ = cfg.Store.(link.Deduper)
	creator.batcher, _ = cfg.Store.(link.Batcher)
	return &Services{
		creator,
		&Editor{store: cfg.Store, rules: allowed, court: judging, announce: cfg.Announce, turns: newTurns()},
		&Finder{store: cfg.Store, index: cfg.Index, ranking: cfg.Ranking},
		allowed,
	}
}

// withDefaults fills in what Config says of absent parts.
func withDefaults(cfg Config) Config {
	if cfg.Plans == nil {
		cfg.Plans = DefaultPlans()
	}
	if cfg.Judge == nil {
		cfg.Judge = byLists(cfg.Blocklists)
	}
	if cfg.Moderator == nil {
		cfg.Moderator = nobody{}
	}
	if cfg.Journal == nil {
		cfg.Journal = nobody{}
	}
	if cfg.Country == nil {
		cfg.Country = func(netip.Addr) string { return "" }
	}
	if cfg.Announce == nil {
		cfg.Announce = func(link.Change) {}
	}
	if cfg.Created == nil {
		cfg.Created = func(link.Key) {}
	}
	if cfg.Made == nil {
		cfg.Made = func(link.Link) {}
	}
	return cfg
}
