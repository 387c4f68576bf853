package cache

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// shards bounds how many keys wait for each other's bookkeeping; a power of two.
	shards = 64
	// patience is how long a visitor waits for the source when L1 has an answer that
	// is only too old.
	patience = 100 * time.Millisecond
	// feedLimit is how old the last contact with the change log may be before codes
	// count as never issued no more (and the server as unready).
	feedLimit = 5 * time.Second
)

// Tiered answers what a key leads to: from L1 when it can, else from the source,
// with one load per key at a time. It implements redirect.Source and is safe for
// many goroutines.
type Tiered struct {
	// Set once in New.
	cfg    Config
	source Source
	l1     *otter.Cache[uint64, *Held]
	seed   maphash.Seed
	start  time.Time
	due    chan *Held       // refreshes asked for and not begun
	puts   chan offered     // for L2, and not begun
	outbox chan link.Change // for the bus, and not sent
	kick   chan struct{}    // somebody wants the change log read
	recent recent
	polls  polls

	shards [shards]shard

	primaryUntil atomic.Int64 // until then every key is read by Get
	polled       atomic.Int64 // when the change log was last read to its end
	heard        atomic.Int64 // when the bus last said nothing that the log has to be read for
	told         atomic.Int64 // when it last said anything
	counts       counters
	failing      repeatlog.Condition // look-ups of the source
}

// shard holds what is going on with its share of the keys.
type shard struct {
	mu      sync.Mutex
	flights map[link.Key]*flight // guarded by mu
	floors  floors               // guarded by mu
}

// New returns a cache in front of source. It starts nothing: without Run nothing is
// refreshed ahead, and nothing counts as never issued.
func New(cfg Config, source Source) (*Tiered, error) {
	if source == nil {
		return nil, errors.New("cache: no source")
	}
	cfg = cfg.withDefaults()
	l1, err := otter.New(&otter.Options[uint64, *Held]{MaximumWeight: cfg.Bytes, Weigher: weigh})
	if err != nil {
		return nil, fmt.Errorf("cache: make L1: %w", err)
	}
	c := &Tiered{
		cfg: cfg, source: source, l1: l1,
		seed: maphash.MakeSeed(), start: time.Now(),
		due: make(chan *Held, 1024), puts: make(chan offered, 1024),
		outbox: make(chan link.Change, 1024), kick: make(chan struct{}, 1),
	}
	if cfg.L2 != nil {
		if !cfg.Shared {
			return nil, errors.New("cache: L2 without Shared: nobody would follow the change log")
		}
		c.recent.keep()
	}
	for i := range c.shards {
		c.shards[i].flights = map[link.Key]*flight{}
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
	h := c.hashString(k.Domain, k.Code)
	e := find(c, h, k.Domain, k.Code)
	if e != nil && c.serves(e) {
		return e.answer()
	}
	if e == nil && c.never(k.Code) && c.heardAll(ctx) && c.never(k.Code) {
		c.counts.never.Add(1)
		return link.Target{}, link.ErrNotFound
	}
	limit := c.cfg.LoadTimeout
	if e != nil && !e.Missing {
		limit = min(limit, patience)
	}
	loaded, err := c.load(ctx, h, k, e, limit)
	if err == nil {
		return loaded.answer()
	}
	// What L1 holds now, not what it held before: a change may have come meanwhile.
	if e = c.peek(h, k); e != nil && !e.Missing && c.clock() < e.stale {
		c.counts.stale.Add(1)
		return e.Target, nil
	}
	return link.Target{}, err
}

// Hit returns the entry that a look-up of this key would be answered from without
// asking anybody, or nil. It takes the bytes of a request as they are and does not
// allocate.
func (c *Tiered) Hit(d link.Domain, code []byte) *Held {
	e := find(c, c.hashBytes(d, code), d, code)
	if e == nil || !c.serves(e) {
		return nil
	}
	return e
}

// serves reports whether e may be served without waiting, and sees to its refresh.
func (c *Tiered) serves(e *Held) bool {
	now := c.clock()
	if e.Missing {
		return now < e.fresh
	}
	if now >= e.fresh {
		// Nobody waits again for a source that failed a moment ago.
		if now >= e.stale || !e.failed.Load() {
			return false
		}
		c.counts.stale.Add(1)
	}
	if ask := e.ask.Load(); now >= ask && e.ask.CompareAndSwap(ask, now+int64(retryAfter)) {
		c.askRefresh(e)
	}
	return true
}

// Behind returns how long ago the change log was last read to its end, or the bus said
// that there is nothing to read. An instance whose store is shared is ready only while
// this is at most 5 s. Without Config.Shared nothing can be missed, and it is 0.
func (c *Tiered) Behind() time.Duration {
	if !c.cfg.Shared {
		return 0
	}
	return time.Duration(c.clock() - max(c.polled.Load(), c.heard.Load()))
}

// BusSilent returns for how long nothing at all came by the bus, which brings at least what
// this process says itself each second; 0 without Config.Bus.
func (c *Tiered) BusSilent() time.Duration {
	if c.cfg.Bus == nil {
		return 0
	}
	return time.Duration(c.clock() - c.told.Load())
}

// never reports whether the code was certainly never issued. The bus alone is no reason:
// whoever made a link may have died before he said so there.
func (c *Tiered) never(code link.Code) bool {
	if c.cfg.Issued == nil || (c.cfg.Shared && c.clock()-c.polled.Load() > int64(feedLimit)) {
		return false
	}
	return c.cfg.Issued.Never(code)
}

func (c *Tiered) clock() int64 { return int64(time.Since(c.start)) }

func (c *Tiered) shard(h uint64) *shard { return &c.shards[h%shards] }
