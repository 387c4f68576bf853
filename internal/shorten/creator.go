package shorten

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/auth"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/weburl"
)

const (
	// defaultRedirect is the status of links that name none: browsers ask again
	// each time, so that clicks count and changes take effect.
	defaultRedirect link.Redirect = 302

	// maxCodes bounds the codes tried for one link. With a space that is half
	// full, 20 misses in a row happen once in a million creates.
	maxCodes = 20

	// maxTries bounds how often one insert is sent while its outcome is unknown.
	maxTries = 3
	// retryPause is the wait before the second try; it doubles.
	retryPause = 10 * time.Millisecond
)

// Config is what [New] needs.
type Config struct {
	Store  link.Store
	Codes  codegen.Generator
	Limits ratelimit.Store

	// Own are the hosts of this service: no link may lead there.
	Own *weburl.Hosts

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
	codes    codegen.Generator
	limits   ratelimit.Store
	own      *weburl.Hosts
	host     link.Domain
	domains  map[link.Domain]struct{}
	plans    Plans
	announce func(link.Change)
	minted   func(link.Key)
	random   io.Reader
	metrics  *metrics
}

// New returns a Creator.
func New(cfg Config) *Creator {
	c := &Creator{
		store: cfg.Store, codes: cfg.Codes, limits: cfg.Limits, own: cfg.Own,
		host: link.Domain(strings.ToLower(string(cfg.Host))), domains: map[link.Domain]struct{}{},
		plans: cfg.Plans, announce: cfg.Announce, minted: cfg.Minted, random: cfg.Random,
		metrics: newMetrics(cfg.Metrics),
	}
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

// Create stores a new link and returns it; nil means durable. Errors:
// InvalidError, ErrReserved, ErrTaken, LimitedError, those of auth, and
// link.ErrUnavailable when nothing is known to be stored. When ctx ended or the
// store kept failing, the link may exist, but nobody was told its code.
func (c *Creator) Create(ctx context.Context, now time.Time, who auth.Caller, req *Request) (link.Link, error) {
	now = now.UTC().Truncate(time.Millisecond)
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
	var stored link.Link
	if req.Alias.set() {
		stored, err = c.claim(ctx, l)
	} else {
		stored, err = c.mint(ctx, l)
	}
	if err != nil {
		return link.Link{}, err
	}
	c.metrics.created.Inc()
	if stored.Minted {
		c.minted(stored.Key)
	} else {
		c.announce(link.Change{Key: stored.Key, Version: stored.Version})
	}
	return stored, nil
}

// draft returns the link that the request asks for, without a code unless it
// names one.
func (c *Creator) draft(now time.Time, who auth.Caller, req *Request) (link.Link, error) {
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
		if err := checkAlias(req.Alias.Value); err != nil {
			return link.Link{}, err
		}
		l.Key.Code = link.Code(req.Alias.Value)
	}
	l.ID, err = link.NewID(now, c.random)
	return l, err
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
func (c *Creator) claim(ctx context.Context, l link.Link) (link.Link, error) {
	stored, err := c.insert(ctx, l)
	if errors.Is(err, link.ErrExists) {
		return link.Link{}, ErrTaken
	}
	return stored, err
}

// mint stores a link under a generated code. Any strategy can meet a code that is
// taken: it always takes the next. A strategy that promised otherwise is told, and
// the collision raises an alarm.
func (c *Creator) mint(ctx context.Context, l link.Link) (link.Link, error) {
	l.Minted = c.codes.Minted()
	need := codegen.Need{Domain: l.Key.Domain, Workspace: l.Workspace, Destination: l.Destination}
	for range maxCodes {
		code, err := c.codes.Next(ctx, need)
		if err != nil {
			return link.Link{}, fmt.Errorf("make a code: %w", err)
		}
		need.Attempt++
		if Reserved(code) {
			continue
		}
		l.Key.Code = code
		stored, err := c.insert(ctx, l)
		if !errors.Is(err, link.ErrExists) {
			return stored, err
		}
		if c.codes.Promise() == codegen.Unique {
			c.codes.Burned(code)
			c.metrics.collisions.Inc()
		}
	}
	return link.Link{}, fmt.Errorf("%w: %d codes in a row were taken", link.ErrUnavailable, maxCodes)
}

// insert is the one conditional insert. An error that is no sentinel leaves open
// whether the link was stored; the same ID makes it safe to ask again, and the
// caller's code must not be given up before that is known.
func (c *Creator) insert(ctx context.Context, l link.Link) (stored link.Link, err error) {
	pause := retryPause
	for try := 1; ; try++ {
		stored, err = c.store.Create(ctx, l)
		if err == nil || decided(err) {
			return stored, err
		}
		if try == maxTries || !sleep(ctx, pause) {
			return link.Link{}, fmt.Errorf("%w: the outcome of storing %s is unknown: %w", link.ErrUnavailable, l.Key, err)
		}
		c.metrics.retries.Inc()
		pause *= 2
	}
}

// decided reports whether the error of a write says that nothing was stored.
func decided(err error) bool {
	return errors.Is(err, link.ErrExists) || errors.Is(err, link.ErrConflict) ||
		errors.Is(err, link.ErrInvalid) || errors.Is(err, link.ErrUnavailable)
}

// sleep waits, and reports false as soon as ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
