package shorten

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// defaultRedirect is the status of links that name none: browsers ask again
// each time, so that clicks count and changes take effect.
const defaultRedirect link.Redirect = 302

// Config is what [New] needs.
type Config struct {
	// Store may be a link.Deduper and a link.Batcher too; without them dedupe is
	// refused, and MakeMany must not be called.
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
	// Blocklists name further hosts that no link may lead to; nil = none.
	Blocklists *abuse.Blocklists

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

	// Minted is called in the same way with the key of each new link whose code the
	// permutation made: a cache of this process may believe it unknown. Nil = nobody
	// listens.
	Minted func(link.Key)

	// Random is the source of link ids, normally crypto/rand.Reader.
	Random io.Reader

	// Metrics registers the package's counters; nil = they are kept to itself.
	Metrics prometheus.Registerer
}

// Creator makes, reads, changes and deletes links on behalf of a caller. It is
// safe for many goroutines.
type Creator struct {
	// Set once in New.
	store    link.Store
	index    search.Index
	ranking  search.Ranking
	codes    codegen.Generator
	limits   ratelimit.Store
	own      *weburl.Hosts
	lists    *abuse.Blocklists // nil = none
	host     link.Domain
	domains  map[link.Domain]struct{}
	plans    Plans
	announce func(link.Change)
	minted   func(link.Key)
	ids      *link.IDs
	dedupe   link.Deduper // nil = the store is none
	dedupes  bool         // unless a request says otherwise
	batcher  link.Batcher
	attempts *attempts
	turns    *turns
	claims   idempotency.Store
	metrics  *metrics
}

// New returns a Creator.
func New(cfg Config) *Creator {
	c := &Creator{
		store: cfg.Store, index: cfg.Index, ranking: cfg.Ranking, codes: cfg.Codes, limits: cfg.Limits, own: cfg.Own,
		host: link.Domain(strings.ToLower(string(cfg.Host))), domains: map[link.Domain]struct{}{},
		plans: cfg.Plans, announce: cfg.Announce, minted: cfg.Minted, dedupes: cfg.Dedupe, ids: link.NewIDs(cfg.Random),
		attempts: newAttempts(), turns: newTurns(), claims: cfg.Once, metrics: newMetrics(cfg.Metrics),
		lists: cfg.Blocklists,
	}
	c.dedupe, _ = cfg.Store.(link.Deduper)
	c.batcher, _ = cfg.Store.(link.Batcher)
	for _, d := range cfg.Domains {
		c.domains[d] = struct{}{}
	}
	if c.plans == nil {
		c.plans = DefaultPlans()
	}
	if c.announce == nil {
		c.announce = func(link.Change) {}
	}
	if c.minted == nil {
		c.minted = func(link.Key) {}
	}
	return c
}

// Create is Make for callers who want the link only.
func (c *Creator) Create(ctx context.Context, now time.Time, who auth.Caller, req *Request) (link.Link, error) {
	made, err := c.Make(ctx, now, who, req)
	return made.Link, err
}

// Make stores a new link, or finds the one that the request may have instead; nil
// means durable. Errors: InvalidError, ListedError, ErrReserved, ErrTaken, LimitedError,
// those of auth, with an idempotency key ErrKeyReused, ErrKeyBusy and ErrLinkGone, and
// link.ErrUnavailable when nothing is known to be stored. When ctx ended or the store
// kept failing, the link may exist, but nobody was told its code.
func (c *Creator) Make(ctx context.Context, now time.Time, who auth.Caller, req *Request) (Made, error) {
	if req.IdempotencyKey != "" {
		return c.once(ctx, now, who, req)
	}
	l, err := c.admit(ctx, now, who, req)
	if err != nil {
		return Made{}, err
	}
	var made Made
	if req.Alias.set() {
		made, err = c.claim(ctx, now, l, req)
	} else {
		made, err = c.mint(ctx, now, l, req)
	}
	if err != nil {
		return Made{}, err
	}
	c.tell(made)
	return made, nil
}

// admit returns the link that a caller asks for and may have, with an id, and takes it
// off the caller's limit, which also pays for one that a blocklist forbids.
func (c *Creator) admit(ctx context.Context, now time.Time, who auth.Caller, req *Request) (link.Link, error) {
	l, err := c.draft(now, who, req)
	if err != nil {
		return link.Link{}, err
	}
	if err := authorise(who, auth.LinksWrite); err != nil {
		return link.Link{}, err
	}
	if req.Limit, err = c.charge(ctx, now, who, 1); err != nil {
		return link.Link{}, err
	}
	if err := c.assess(l.Destination, l.Fallback); err != nil {
		return link.Link{}, err
	}
	l.ID, err = c.ids.New(now)
	return l, err
}

// tell announces what was made, and counts it.
func (c *Creator) tell(made Made) {
	if made.Found {
		c.metrics.found.Inc()
		return
	}
	c.metrics.created.Inc()
	c.announceNew(made.Link)
}

// announceNew lets caches know a link that they may believe unknown.
func (c *Creator) announceNew(l link.Link) {
	if l.Minted {
		c.minted(l.Key)
	} else {
		c.announce(link.Change{Key: l.Key, Version: l.Version})
	}
}

// draft returns the link that the request asks for, without an id, and without a code
// unless it names one. From then on the request says whether to dedupe.
func (c *Creator) draft(now time.Time, who auth.Caller, req *Request) (link.Link, error) {
	now = now.UTC().Truncate(time.Millisecond)
	l := link.Link{
		Workspace: who.Workspace, CreatedBy: who.KeyID,
		Status: link.Active, Safety: link.Clean, Redirect: defaultRedirect, NoIndex: true,
		Created: now, Updated: now,
	}
	if !req.LongURL.Given {
		return link.Link{}, invalid("long_url", "is required")
	}
	if err := c.apply(now, &l, &req.Fields); err != nil {
		return link.Link{}, err
	}
	var err error
	if l.Key.Domain, err = c.domain(req.Domain); err != nil {
		return link.Link{}, err
	}
	if req.Alias.set() {
		if err := CheckAlias(req.Alias.Value); err != nil {
			return link.Link{}, err
		}
		l.Key.Code = link.Code(req.Alias.Value)
	}
	return l, c.settleDedupe(who, req)
}

// settleDedupe fills in whether to dedupe where the request does not say so, and
// refuses to show a stranger's link to a caller without a key.
func (c *Creator) settleDedupe(who auth.Caller, req *Request) error {
	if c.dedupes && c.dedupe != nil && !req.Dedupe.set() && !req.Alias.set() && !who.IsAnonymous() {
		req.Dedupe = Value(true)
	}
	switch {
	case !req.Dedupe.Value:
		return nil
	case who.IsAnonymous():
		return invalid("dedupe", "needs an API key")
	case c.dedupe == nil:
		return invalid("dedupe", "is not offered by this link store")
	}
	return nil
}

// authorise returns the error of a caller who lacks the scope: without a key the
// way out is to show one.
func authorise(who auth.Caller, scope auth.Scope) error {
	switch {
	case who.Has(scope):
		return nil
	case who.IsAnonymous():
		return auth.ErrUnauthenticated
	}
	return fmt.Errorf("%w: it lacks the scope %s", auth.ErrForbidden, scope)
}

// claim stores a link under the alias that its owner chose.
func (c *Creator) claim(ctx context.Context, now time.Time, l link.Link, req *Request) (Made, error) {
	stored, err := c.insert(ctx, l)
	if errors.Is(err, link.ErrExists) {
		return c.taken(ctx, now, l, req)
	}
	return Made{Link: stored}, err
}

// taken answers for an alias that another link has: to who asks to dedupe, with that
// link, where it is what they want.
func (c *Creator) taken(ctx context.Context, now time.Time, l link.Link, req *Request) (Made, error) {
	if !req.Dedupe.Value {
		return Made{}, ErrTaken
	}
	other, err := c.store.Get(ctx, l.Key)
	switch {
	case err != nil:
		return Made{}, fmt.Errorf("get %s: %w", l.Key, err)
	case !other.StandsInFor(l, now):
		return Made{}, ErrTaken
	}
	return Made{Link: other, Found: true}, nil
}

// place stores a link under the code that it has, or finds the one that stands in
// for it.
func (c *Creator) place(ctx context.Context, now time.Time, l link.Link, req *Request) (Made, error) {
	if !req.Dedupe.Value || req.Alias.set() {
		stored, err := c.insert(ctx, l)
		return Made{Link: stored}, err
	}
	return persist(ctx, c, l.Key, func() (made Made, err error) {
		made.Link, made.Found, err = c.dedupe.FindOrCreate(ctx, l, now)
		return made, err
	})
}

// insert is the one conditional insert.
func (c *Creator) insert(ctx context.Context, l link.Link) (link.Link, error) {
	return persist(ctx, c, l.Key, func() (link.Link, error) { return c.store.Create(ctx, l) })
}
