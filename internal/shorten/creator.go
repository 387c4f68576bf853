package shorten

import (
	"context"
	"errors"
	"fmt"
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

// Creator makes, reads, changes and deletes links on behalf of a caller. It is
// safe for many goroutines.
type Creator struct {
	// Set once in New.
	store     link.Store
	index     search.Index
	ranking   search.Ranking
	codes     codegen.Generator
	limits    ratelimit.Store
	own       *weburl.Hosts
	lists     *abuse.Blocklists // nil = none
	words     *abuse.Words      // nil = none
	imitated  map[string]struct{}
	judge     func(context.Context, time.Time, *abuse.Facts) abuse.Decision
	moderator Moderator
	journal   Journal
	country   func(netip.Addr) string
	random    io.Reader
	host      link.Domain
	domains   map[link.Domain]struct{}
	plans     Plans
	announce  func(link.Change)
	created   func(link.Key)
	made      func(link.Link)
	ids       *link.IDs
	dedupe    link.Deduper // nil = the store is none
	dedupes   bool         // unless a request says otherwise
	batcher   link.Batcher
	attempts  *attempts
	turns     *turns
	claims    idempotency.Store
	metrics   *metrics
}

// New returns a Creator.
func New(cfg Config) *Creator {
	c := &Creator{
		store: cfg.Store, index: cfg.Index, ranking: cfg.Ranking, codes: cfg.Codes, limits: cfg.Limits, own: cfg.Own,
		host: link.Domain(strings.ToLower(string(cfg.Host))), domains: map[link.Domain]struct{}{},
		plans: cfg.Plans, announce: cfg.Announce, created: cfg.Created, made: cfg.Made, dedupes: cfg.Dedupe, ids: link.NewIDs(cfg.Random),
		attempts: newAttempts(), turns: newTurns(), claims: cfg.Once, metrics: newMetrics(cfg.Metrics),
		lists: cfg.Blocklists, words: cfg.Words, imitated: imitated(), judge: cfg.Judge, moderator: cfg.Moderator, journal: cfg.Journal, country: cfg.Country, random: cfg.Random,
	}
	c.dedupe, _ = cfg.Store.(link.Deduper)
	c.batcher, _ = cfg.Store.(link.Batcher)
	for _, d := range cfg.Domains {
		c.domains[d] = struct{}{}
	}
	if c.plans == nil {
		c.plans = DefaultPlans()
	}
	if c.judge == nil {
		c.judge = byLists(cfg.Blocklists)
	}
	if c.moderator == nil {
		c.moderator = nobody{}
	}
	if c.journal == nil {
		c.journal = nobody{}
	}
	if c.country == nil {
		c.country = func(netip.Addr) string { return "" }
	}
	if c.announce == nil {
		c.announce = func(link.Change) {}
	}
	if c.created == nil {
		c.created = func(link.Key) {}
	}
	if c.made == nil {
		c.made = func(link.Link) {}
	}
	return c
}

// Create is Make for callers who want the link only.
func (c *Creator) Create(ctx context.Context, now time.Time, who auth.Principal, req *Request) (link.Link, error) {
	made, err := c.Make(ctx, now, who, req)
	return made.Link, err
}

// Make stores a new link, or finds the one that the request may have instead; nil
// means durable. Errors: InvalidError, BannedError, ListedError, HarmfulError, ErrReserved, ErrRefused, ErrTaken, LimitedError,
// those of auth, with an idempotency key ErrKeyReused, ErrKeyBusy and ErrLinkGone,
// link.ErrUnavailable when nothing is known to be stored, and link.ErrUncertain when the
// store kept failing: then, and when ctx ended, the link may exist, but nobody was told its
// code.
func (c *Creator) Make(ctx context.Context, now time.Time, who auth.Principal, req *Request) (Made, error) {
	defer c.moderator.Enter()()
	if req.IdempotencyKey != "" {
		return c.once(ctx, now, who, req)
	}
	p, err := c.admit(ctx, now, who, req)
	if err != nil {
		return Made{}, err
	}
	var made Made
	if req.Alias.some() {
		made, err = c.claim(ctx, now, p, req)
	} else {
		made, err = c.mint(ctx, now, p, req)
	}
	if err != nil {
		return Made{}, err
	}
	c.tell(made)
	return made, nil
}

// admit returns the link that a caller asks for and may have, with an id, and takes it
// off the caller's limit, which also pays for one that is refused because of where it
// leads.
func (c *Creator) admit(ctx context.Context, now time.Time, who auth.Principal, req *Request) (*proposal, error) {
	l, err := c.draft(now, who, req)
	if err != nil {
		return nil, err
	}
	if err := auth.May(who, auth.CreateLink, auth.Resource{}); err != nil {
		return nil, err
	}
	if req.Limit, err = c.charge(ctx, now, who, 1); err != nil {
		return nil, err
	}
	p := &proposal{Link: l}
	if err := c.propose(ctx, now, who, p, false); err != nil {
		return nil, err
	}
	p.ID, err = c.ids.New(now)
	return p, err
}

// propose judges a drafted link and gives it the safety that follows. Again says that
// the same link was proposed before, and counts for no second one.
func (c *Creator) propose(ctx context.Context, now time.Time, who auth.Principal, p *proposal, again bool) error {
	f := c.factsOf(who, p.Workspace)
	f.Change = again
	var err error
	if p.judged, err = c.assess(ctx, now, f, ofLink(&p.Link)); err == nil {
		p.Safety = p.judged.Safety
	}
	return err
}

// tell announces what was made, and counts it.
func (c *Creator) tell(made Made) {
	if made.Found {
		c.metrics.found.Inc()
		return
	}
	c.metrics.created.Inc()
	if made.Link.Safety != link.Clean {
		c.metrics.warned.Inc()
	}
	c.announceNew(made.Link)
}

// announceNew lets caches know a link that they may believe unknown.
func (c *Creator) announceNew(l link.Link) {
	if l.CodeKind != link.Chosen {
		c.created(l.Key)
	} else {
		c.announce(link.Change{Key: l.Key, Version: l.Version})
	}
	c.made(l)
}

// draft returns the link that the request asks for, without an id, and without a code
// unless it names one. From then on the request says whether to dedupe.
func (c *Creator) draft(now time.Time, who auth.Principal, req *Request) (link.Link, error) {
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
	if req.Alias.some() {
		if err := c.checkAlias(req.Alias.Value); err != nil {
			return link.Link{}, err
		}
		l.Key.Code = link.Code(req.Alias.Value)
	}
	return l, c.settleDedupe(who, req)
}

// settleDedupe fills in whether to dedupe where the request does not say so, and
// refuses to show a stranger's link to a caller without a key.
func (c *Creator) settleDedupe(who auth.Principal, req *Request) error {
	if c.dedupes && c.dedupe != nil && !req.Dedupe.some() && !req.Alias.some() && !who.IsAnonymous() {
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

// claim stores a link under the alias that its owner chose.
func (c *Creator) claim(ctx context.Context, now time.Time, p *proposal, req *Request) (Made, error) {
	free, err := c.free(ctx, p)
	if err != nil {
		return Made{}, err
	}
	if free {
		stored, err := c.insert(ctx, now, p)
		if !errors.Is(err, link.ErrExists) {
			return Made{Link: stored}, err
		}
	}
	return c.taken(ctx, now, p.Link, req)
}

// free reports whether a link that is not clean may have its alias: so that whoever asks
// for a taken one leaves nothing in the journal. Of a clean one the insert knows better.
func (c *Creator) free(ctx context.Context, p *proposal) (bool, error) {
	if !p.unclean() {
		return true, nil
	}
	other, err := c.store.Get(ctx, p.Key)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get %s: %w", p.Key, err)
	}
	return other.ID == p.ID, nil
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
func (c *Creator) place(ctx context.Context, now time.Time, p *proposal, req *Request) (Made, error) {
	if !req.Dedupe.Value || req.Alias.some() || p.unclean() { // no link stands in for one that is not clean
		stored, err := c.insert(ctx, now, p)
		return Made{Link: stored}, err
	}
	return persist(ctx, c, p.Key, func() (made Made, err error) {
		made.Link, made.Found, err = c.dedupe.FindOrCreate(ctx, p.Link, now)
		return made, err
	})
}

// insert is the one conditional insert, behind the journal.
func (c *Creator) insert(ctx context.Context, now time.Time, p *proposal) (link.Link, error) {
	if err := c.enter(ctx, now, p); err != nil {
		return link.Link{}, err
	}
	return persist(ctx, c, p.Key, func() (link.Link, error) { return c.store.Create(ctx, p.Link) })
}
