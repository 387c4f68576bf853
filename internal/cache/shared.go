package cache

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"curt/internal/link"
)

const (
	// sharedFor is how long an entry is shared, each ±10 % so that what was put together
	// does not end together.
	sharedFor = 24 * time.Hour
	// sharers is how many puts may wait for L2 at a time.
	sharers = 32
	// warmWithin is how long ago a link may have been begun that Warm takes; a create that
	// takes longer has given up.
	warmWithin = 10 * time.Second
	// earlyBy is the beta of XFetch: above 1, entries are loaded anew sooner.
	earlyBy = 1.0
)

// Entry is what processes share of a key.
type Entry struct {
	Target  link.Target // as the source gave it; zero when Missing
	Missing bool        // the source has no such link
	// Void: there is a newer version than any that was shared, Target.Version, and nobody
	// has read it yet. It stands in the way of older ones and answers nothing.
	Void bool

	AsOf  link.Sequence // the source was read when the change log was known up to here
	Until time.Time     // not kept longer; milliseconds
	Cost  time.Duration // what reading the source took; microseconds
}

// Version orders entries of one key.
func (e *Entry) Version() link.Version { return e.Target.Version }

// Shared is a cache that many processes fill and read (L2). It may forget anything at any
// time, and it may bring back what was replaced (a fail-over to a replica that was behind,
// a restart from an old snapshot): Tiered compares what it gets with the change log, and
// believes nothing that the log has overtaken.
//
// Both methods have a short deadline of their own, which a caller's may shorten, and are
// safe for many goroutines. An error means that nobody could be asked; the driver counts
// it, and what follows is what follows a miss.
type Shared interface {
	// Get returns what is kept for k; found is false for nothing, for what has ended, and
	// for what this release cannot read.
	Get(ctx context.Context, k link.Key) (e Entry, found bool, err error)
	// Put keeps e until e.Until, unless a newer version is there; of one version, a Void
	// entry never replaces another. An entry that has ended is not kept.
	Put(ctx context.Context, k link.Key, e Entry) error
}

// fromShared reads k from L2. It returns false for whatever does not answer the question: nothing
// there, too old for the change log, or due to be loaded anew.
func (c *Tiered) fromShared(ctx context.Context, h uint64, k link.Key) (answer, bool) {
	e, found, err := c.cfg.L2.Get(ctx, k)
	if err != nil || !found || e.Void {
		c.counts.sharedMisses.Add(1)
		return answer{}, false
	}
	if !c.recent.vouches(h, e.Version(), e.AsOf) {
		c.counts.sharedOld.Add(1)
		return answer{}, false
	}
	if early(time.Until(e.Until), e.Cost, rand.Float64()) {
		c.counts.sharedMisses.Add(1)
		return answer{}, false
	}
	c.counts.sharedHits.Add(1)
	return answer{target: e.Target, missing: e.Missing}, true
}

// offer has what the source said put into L2, soon and by somebody else, so that no visitor
// waits for it. Where too much waits already, it is left out.
func (c *Tiered) offer(k link.Key, found answer, asOf link.Sequence, cost time.Duration) {
	if found.target.Limited {
		return // what is left of its clicks is only the store's to say
	}
	now := time.Now()
	e := Entry{
		Target: found.target, Missing: found.missing, AsOf: asOf, Cost: cost,
		Until: now.Add(c.sharedFor(found, now)),
	}
	select {
	case c.puts <- offered{k, e}:
	default:
		c.counts.sharedCrowded.Add(1)
	}
}

// Warm has L2 take a link that was just made, so that its first visitor on any process needs
// no question to the source. It does not wait; what finds no room, or is not new, is left
// out. What changed the link since is in the change log behind the position that its entry
// gets: one that was known before anybody began to make it.
func (c *Tiered) Warm(l link.Link) {
	if age := time.Since(l.Created); c.cfg.L2 == nil || age < 0 || age >= warmWithin {
		return
	}
	target, err := l.Leads()
	if asOf, known := c.recent.settled(); known && err == nil {
		c.offer(l.Key, answer{target: target}, asOf, 0)
	}
}

// offered waits for its turn in share.
type offered struct {
	key   link.Key
	entry Entry
}

// share puts into L2 what was offered, many at a time: one after the other, each would wait
// for the answer to the one before, and a busy process that forgot everything would fill L2
// more slowly than it reads from the source. What goes wrong there is the driver's to count:
// the source can be asked again.
func (c *Tiered) share(ctx context.Context) {
	var all sync.WaitGroup
	for range sharers {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case p := <-c.puts:
					_ = c.cfg.L2.Put(ctx, p.key, p.entry)
				}
			}
		})
	}
	all.Wait()
}

// sharedFor is how long an entry is of use to others: "unknown" as long as here, and a link
// not past its expiry, after which its owner may have given it another.
func (c *Tiered) sharedFor(found answer, now time.Time) time.Duration {
	if found.missing {
		return c.cfg.Missing
	}
	whole := time.Duration(float64(sharedFor) * (0.9 + 0.2*rand.Float64()))
	if found.target.Expires == 0 {
		return whole
	}
	left := time.UnixMilli(found.target.Expires).Sub(now)
	if left <= 0 {
		return c.cfg.Missing
	}
	return min(whole, left)
}

// early is XFetch (Vattani, Chierichetti and Lowenstein, 2015): whether one of many readers
// loads an entry anew before its end. The dearer the load and the nearer the end, the
// likelier; chance is from 0 up to, not including, 1.
func early(left, cost time.Duration, chance float64) bool {
	return float64(left) <= -float64(cost)*earlyBy*math.Log(1-chance)
}
