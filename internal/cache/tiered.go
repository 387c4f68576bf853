package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"curt/internal/cache/issued"
	"curt/internal/cache/keyhash"
	"curt/internal/link"
)

// Tiered answers what a key leads to: from L1 when it can, else from the source,
// with one load per key at a time. It implements redirect.Source and is safe for
// many goroutines.
//
// Its parts are held by value, in the order in which they depend on each other: each part
// refers only to parts above it. New connects them.
type Tiered struct {
	l1       l1
	recent   recent
	polls    polls
	changes  changes
	l2       l2
	loader   loader
	notes    notes
	follower follower

	issued     *issued.Codes // nil = none
	refreshers int
	log        *slog.Logger
	never      atomic.Uint64 // look-ups of codes that were never issued
}

// New returns a cache in front of source. It starts nothing: without Run nothing is
// refreshed ahead, and nothing counts as never issued.
func New(cfg Config, source Source) (*Tiered, error) {
	if source == nil {
		return nil, errors.New("cache: no source")
	}
	if cfg.L2 != nil && !cfg.Shared {
		return nil, errors.New("cache: L2 without Shared has no follower of the change log")
	}
	cfg = cfg.withDefaults()
	entries, err := otter.New(&otter.Options[uint64, *Held]{MaximumWeight: cfg.Bytes, Weigher: weigh})
	if err != nil {
		return nil, fmt.Errorf("cache: create L1: %w", err)
	}
	clock, hash := clock{time.Now()}, keyhash.New()
	c := &Tiered{issued: cfg.Issued, refreshers: cfg.Refreshers, log: cfg.Log}
	c.l1 = l1{
		entries: entries, hash: hash, clock: clock, lag: int64(cfg.Lag),
		terms: terms{unwritten: cfg.Unwritten, clock: clock, fresh: cfg.Fresh, stale: cfg.Stale, admit: cfg.Admit, prepare: cfg.Prepare},
	}
	for i := range c.l1.shards {
		c.l1.shards[i].flights = map[link.Key]*flight{}
	}
	if cfg.L2 != nil {
		c.recent.keep()
	}
	c.polls = polls{clock: clock, shared: cfg.Shared, wanted: make(chan struct{}, 1)}
	c.polls.contacted() // what is loaded before the first reading is believed as long as what it might miss
	c.changes = changes{l1: &c.l1, recent: &c.recent, issued: cfg.Issued, listen: cfg.OnChanges}
	c.l2 = l2{store: cfg.L2, recent: &c.recent, missing: cfg.Missing, unwritten: cfg.Unwritten, puts: make(chan offered, 1024)}
	c.loader = loader{
		clock: clock, l1: &c.l1, l2: &c.l2, polls: &c.polls, source: source, limit: cfg.LoadTimeout, missing: cfg.Missing, log: cfg.Log,
		due: make(chan *Held, 1024),
	}
	c.notes = notes{
		clock: clock, hash: hash, bus: cfg.Bus, changes: &c.changes, recent: &c.recent, polls: &c.polls, l2: &c.l2, log: cfg.Log,
		outbox: make(chan link.Change, 1024),
	}
	c.follower = follower{
		clock: clock, hash: hash, changes: &c.changes, recent: &c.recent, polls: &c.polls, notes: &c.notes, issued: cfg.Issued, log: cfg.Log,
	}
	return c, nil
}

// Lookup returns what k leads to. link.ErrNotFound is the source's word, or follows
// from a code that was never issued; any other error means that the source could
// not be asked and L1 has nothing that may still be served.
//
// The caller's deadline bounds how long it waits for another's load; a load that it
// leads itself goes on to its own deadline, because others may wait for it.
func (c *Tiered) Lookup(ctx context.Context, k link.Key) (link.Target, error) {
	h := c.l1.hash.Of(k.Domain, k.Code)
	e := find(&c.l1, h, k.Domain, k.Code)
	if e != nil && c.loader.serves(e) {
		return e.answer()
	}
	if e == nil && c.neverIssued(ctx, k.Code) {
		c.never.Add(1)
		return link.Target{}, link.ErrNotFound
	}
	limit := c.loader.limit
	if e != nil && !e.Missing && c.loader.clock.now() < e.stale {
		limit = min(limit, patience)
	}
	loaded, err := c.loader.load(ctx, h, k, e, limit)
	if err == nil {
		return loaded.answer()
	}
	if e = c.loader.fallback(h, k); e != nil {
		return e.Target, nil
	}
	return link.Target{}, err
}

// Hit returns the entry that a look-up of this key would be answered from without
// asking anybody, or nil. It takes the bytes of a request as they are and does not
// allocate.
func (c *Tiered) Hit(d link.Domain, code []byte) *Held {
	e := find(&c.l1, c.l1.hash.OfBytes(d, code), d, code)
	if e == nil || !c.loader.serves(e) {
		return nil
	}
	return e
}

// neverIssued reports whether the code was certainly never issued: the filter says so, and
// does so still when all acknowledged changes have been heard.
func (c *Tiered) neverIssued(ctx context.Context, code link.Code) bool {
	if c.issued == nil || !c.polls.current() || !c.issued.Never(code) {
		return false
	}
	return c.polls.heardAll(ctx) && c.polls.current() && c.issued.Never(code)
}

// Run refreshes entries that readers found due, at most Config.Refreshers at once,
// fills Config.L2 and keeps Config.Issued up to date. It returns nil when ctx has ended and all of
// its goroutines have.
func (c *Tiered) Run(ctx context.Context) error {
	var owned sync.WaitGroup
	for range c.refreshers {
		owned.Go(func() { c.loader.refresh(ctx) })
	}
	if c.l2.store != nil {
		owned.Go(func() { c.l2.run(ctx) })
	}
	if c.issued != nil {
		if !c.polls.shared {
			c.issued.Refill() // with Shared, Follow requests it once it hears changes
		}
		owned.Go(func() { c.issued.Run(ctx, c.log) })
	}
	owned.Wait()
	return nil
}

// Follow hears what other processes change: it reads the change log to its end every interval (1 s by design) and applies
// the changes as Changed does. It begins at the log's head with an empty L1. A position that was trimmed away means that
// changes were missed, and so does a log that ends before the position: everything is dropped, and it begins again. It
// returns nil when ctx ends. While the log cannot be read, Staleness grows, and after 5 s entries are believed for a second
// only: a source that answers is asked again, and what is held is served on while it does not.
//
// With Config.Bus the log is read when the bus says that there is something, every
// fourth interval, and every interval while the bus is silent.
func (c *Tiered) Follow(ctx context.Context, log ChangeLog, interval time.Duration) error {
	c.follower.run(ctx, log, interval)
	return nil
}

// Changed makes every answer below the changes' versions impossible: once it
// returned, no look-up that begins is answered with less, and no load that began
// before brings less into L1. A created key is a change too: it ends a cached
// "unknown". For Config.Lag after it the key is read by Get.
func (c *Tiered) Changed(changes ...link.Change) { c.changes.apply(changes) }

// Announce is Changed for what this process has just written: the other processes hear of
// it as well, soon, and the caller does not wait for that.
func (c *Tiered) Announce(changes ...link.Change) {
	c.changes.apply(changes)
	if c.polls.shared {
		c.notes.announce(changes)
	}
}

// Created ends a cached "unknown" of a code that the permutation gave out a moment ago:
// a visitor may have tried the code before. Such creates are not in the change log, so
// other processes may go on for Config.Missing; the chance that a code was tried in that
// time is the reason why they are spared the traffic.
func (c *Tiered) Created(k link.Key) { c.l1.created(c.l1.hash.Of(k.Domain, k.Code), k) }

// Warm has L2 take a link that was just created, so that its first visitor on any process
// needs no read of the source. It does not wait; what finds no room, or is not new, is left out.
func (c *Tiered) Warm(l link.Link) { c.l2.warm(l) }

// Accepted ends what is cached of a key whose link the source has from now on although it is not written yet: its version is 0.
// [Tiered.Created] ends that.
func (c *Tiered) Accepted(l *link.Link) {
	if c.issued != nil && l.CodeKind == link.Chosen {
		c.issued.Created(l.Key.Code)
	}
	h := c.l1.hash.Of(l.Key.Domain, l.Key.Code)
	c.l1.forget(h, l.Key)
}

// Staleness returns how long ago the change log was last read to its end, or the bus said
// that there is nothing to read. An instance whose store is shared is ready only while
// this is at most 5 s. Without Config.Shared nothing can be missed, and it is 0.
func (c *Tiered) Staleness() time.Duration { return c.polls.staleness() }

// BusSilent returns for how long nothing at all came by the bus, which brings at least what
// this process says itself each second; 0 without Config.Bus.
func (c *Tiered) BusSilent() time.Duration { return c.notes.silent() }
