package cache

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
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

	AsOf  link.Heads    // the source was read when the change log was known up to here
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

// l2 is the level that processes share, as seen from this one.
//
// Invariant: nothing from it is an answer unless recent vouches for it, and nothing is put
// there without the position of the change log that the answer is not behind. No look-up
// waits for a put.
type l2 struct {
	store   Shared // nil = none
	recent  *recent
	missing time.Duration // how long "not found" is shared

	unwritten bool         // the source may have links that are not written yet
	puts      chan offered // offered and not begun

	hits, misses, old, crowded atomic.Uint64
}

// offered is an entry that waits to be put.
type offered struct {
	key   link.Key
	entry Entry
}

// get reads k. It returns false for whatever does not answer the question: nothing
// there, too old for the change log, or due to be loaded anew.
func (l *l2) get(ctx context.Context, h uint64, k link.Key) (answer, bool) {
	e, found, err := l.store.Get(ctx, k)
	if err != nil || !found || e.Void {
		l.misses.Add(1)
		return answer{}, false
	}
	if !l.recent.vouches(h, e.Version(), e.AsOf) {
		l.old.Add(1)
		return answer{}, false
	}
	if early(time.Until(e.Until), e.Cost, rand.Float64()) {
		l.misses.Add(1)
		return answer{}, false
	}
	l.hits.Add(1)
	return answer{target: e.Target, missing: e.Missing}, true
}

// asOf returns the position for an answer of the source that is read from now on.
func (l *l2) asOf(now, lag int64) (link.Heads, bool) {
	if l.store == nil {
		return nil, false
	}
	return l.recent.asOf(now, lag)
}

// offer queues what the source said, so that no visitor waits for the put. When the queue is
// full, it is left out.
func (l *l2) offer(k link.Key, found answer, asOf link.Heads, cost time.Duration) {
	if found.target.Limited {
		return // only the store knows how many of its clicks are left
	}
	if l.unwritten && found.target.Version == 0 {
		return // neither a link that is not written yet nor "not found" holds for longer than a moment
	}
	now := time.Now()
	e := Entry{Target: found.target, Missing: found.missing, AsOf: asOf, Cost: cost, Until: now.Add(l.lifetime(found, now))}
	select {
	case l.puts <- offered{k, e}:
	default:
		l.crowded.Add(1)
	}
}

// warm offers a link that was just created. What changed the link since is in the change log
// behind the position that its entry gets: one that was known before the create began.
func (l *l2) warm(created link.Link) {
	if age := time.Since(created.Created); l.store == nil || age < 0 || age >= warmWithin {
		return
	}
	target, err := created.Leads()
	if asOf, known := l.recent.calmPosition(); known && err == nil {
		l.offer(created.Key, answer{target: target}, asOf, 0)
	}
}

// forbid leaves a mark that keeps versions below the change's out.
func (l *l2) forbid(ctx context.Context, ch link.Change) {
	if l.store == nil {
		return
	}
	_ = l.store.Put(ctx, ch.Key, Entry{
		Target: link.Target{Version: ch.Version}, Void: true, Until: time.Now().Add(sharedFor),
	})
}

// run puts what was offered until ctx ends, many at a time: one after the other, each would
// wait for the answer to the one before, and a busy process with an empty L1 would fill L2
// more slowly than it reads from the source. The driver counts errors: the source remains.
func (l *l2) run(ctx context.Context) {
	var all sync.WaitGroup
	for range sharers {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case p := <-l.puts:
					_ = l.store.Put(ctx, p.key, p.entry)
				}
			}
		})
	}
	all.Wait()
}

// lifetime is how long an entry is of use to others: "not found" as long as here, and a link
// not past its expiry, after which its owner may have given it another.
func (l *l2) lifetime(found answer, now time.Time) time.Duration {
	if found.missing {
		return l.missing
	}
	whole := time.Duration(float64(sharedFor) * (0.9 + 0.2*rand.Float64()))
	if found.target.Expires == 0 {
		return whole
	}
	left := time.UnixMilli(found.target.Expires).Sub(now)
	if left <= 0 {
		return l.missing
	}
	return min(whole, left)
}

// early is XFetch (Vattani, Chierichetti and Lowenstein, 2015): whether one of many readers
// loads an entry anew before its end. The dearer the load and the nearer the end, the
// likelier; chance is from 0 up to, not including, 1.
func early(left, cost time.Duration, chance float64) bool {
	return float64(left) <= -float64(cost)*earlyBy*math.Log(1-chance)
}
