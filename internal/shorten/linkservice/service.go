// Package linkservice makes the services of links over one store: it creates, changes and finds
// links, whoever asks and however the request arrived. Read create/create.go, edit/edit.go and
// find/find.go in the folders beside this one; none of them knows HTTP or JSON.
package linkservice

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/abuse"
	"curt/internal/abuse/blocklist"
	"curt/internal/auth"
	"curt/internal/codegen"
	"curt/internal/hosts"
	"curt/internal/idempotency"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/search"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/edit"
	"curt/internal/shorten/find"
	"curt/internal/shorten/judge"
	"curt/internal/shorten/reserve"
)

// Config is what [New] needs.
type Config struct {
	// Store may be a link.Deduper, a link.Batcher and a link.Reserver too; without them dedupe is
	// refused, CreateMany must not be called, and no alias is held.
	Store    link.Store
	Codes    codegen.Generator
	Strategy string // of Codes, a label of metrics
	Aliases  shorten.AliasPolicy
	Held     int // aliases that a workspace may hold at once; 0 = reserve.DefaultMost, below 0 = none
	Limits   ratelimit.Store

	// Queue takes new links that are written later; nil = all are written before they are answered.
	Queue shorten.Queue

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

	// Hosts are those of this service: each serves a domain, and no link may lead there.
	Hosts *hosts.Current
	// Blocklists name further hosts that no link may lead to; nil = none. Where there is
	// a Judge it asks them, and here they say which list it was.
	Blocklists *blocklist.Lists
	// Words are the aliases that the operator keeps or refuses, and that generated codes
	// avoid; nil = none but Reserved.
	Words *blocklist.Words
	// Lists are the aliases that moderators refuse; nil = none.
	Lists shorten.Lists
	// Judge decides about where a link is to lead. It asks memory alone and is safe for
	// many goroutines; nil = by the Blocklists.
	Judge func(ctx context.Context, now time.Time, f *abuse.Facts) abuse.Decision
	// Moderator knows the bans; nil = there are none.
	Moderator judge.Moderator
	// Journal holds a decision before it takes effect. Only a Judge that finds nothing
	// but Clean and Blocked needs none.
	Journal judge.Journal
	// Cases take creates that the score blocked; nil = they are refused without a case.
	Cases judge.Cases
	// Country returns where an address is, ISO 3166-1 alpha-2, "" = unknown; nil = nobody
	// knows.
	Country func(netip.Addr) string

	// Plans bounds the creates of callers; nil = DefaultPlans.
	Plans create.Plans

	// Announce is called, after the write is durable, with each change that a
	// cache may not know: a code that the permutation did not make, and every
	// change of a link. Its Sequence is 0: only the store's change log numbers.
	// It must not block. Nil = nobody listens.
	Announce func(link.Change)

	// Created is called in the same way with the key of each new link whose code the
	// permutation made: a cache of this process may believe it unknown. Nil = nobody
	// listens.
	Created func(link.Key)

	// Stored is called behind them with each new link as it was stored. It must not block.
	// Nil = nobody listens.
	Stored func(link.Link)

	// Random is the source of link ids and salts, normally crypto/rand.Reader. It is
	// read by many goroutines.
	Random io.Reader

	// Metrics registers the package's counters; nil = they are kept to itself.
	Metrics prometheus.Registerer
}

// Service is the services over one store, each of which may be used by itself. It is safe for
// many goroutines.
type Service struct {
	*create.Creator
	*edit.Editor
	*find.Finder
	*reserve.Aliases
	*shorten.Rules
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Plans == nil {
		cfg.Plans = create.DefaultPlans()
	}
	if cfg.Announce == nil {
		cfg.Announce = func(link.Change) {}
	}
	if cfg.Created == nil {
		cfg.Created = func(link.Key) {}
	}
	if cfg.Stored == nil {
		cfg.Stored = func(link.Link) {}
	}
	allowed := shorten.NewRules(cfg.Hosts, cfg.Words, cfg.Lists, cfg.Aliases)
	judging := judge.New(judge.Config{
		Lists: cfg.Blocklists, Decide: cfg.Judge, Moderator: cfg.Moderator, Journal: cfg.Journal, Cases: cfg.Cases, Country: cfg.Country,
		Random: cfg.Random, Metrics: cfg.Metrics,
	})
	var creator *create.Creator
	aliases := reserve.New(reserve.Config{
		Store: cfg.Store, Rules: allowed, Most: cfg.Held, CheckCaller: judging.CheckCaller,
		Charge: func(ctx context.Context, now time.Time, who auth.Principal) (*ratelimit.Verdict, error) {
			return creator.ChargeReservation(ctx, now, who)
		},
	})
	creator = create.New(create.Config{
		Store: cfg.Store, Codes: cfg.Codes, Strategy: cfg.Strategy, Limits: cfg.Limits, Plans: cfg.Plans, Rules: allowed, Judge: judging, Dedupe: cfg.Dedupe,
		Once: cfg.Once, Random: cfg.Random, Queue: cfg.Queue, Metrics: cfg.Metrics, Announce: cfg.Announce, Created: cfg.Created, Stored: cfg.Stored,
		Aliases: aliases,
	})
	queue := cfg.Queue
	if queue == nil {
		queue = shorten.Synchronous{}
	}
	return &Service{
		creator,
		edit.New(cfg.Store, allowed, judging, queue, cfg.Announce, cfg.Metrics),
		find.New(cfg.Store, queue, cfg.Index, cfg.Ranking),
		aliases,
		allowed,
	}
}
