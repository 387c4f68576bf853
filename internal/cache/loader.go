package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// patience is how long a visitor waits for the source when L1 has an answer that
	// is only too old.
	patience = 100 * time.Millisecond
	// rounds bounds how often one flight reads because a change overtook it. Each
	// round after the first reads the primary, so a second one needs a change within
	// the first; five in one load mean a key that changes faster than it can be read.
	rounds = 5
	// disconnectedTTL is how long a link, and "not found", are fresh while neither the log nor the bus is heard.
	disconnectedTTL = time.Second
)

// loader brings entries into L1: it loads from L2 or the source, has entries in use loaded
// ahead of their time, and decides what is served while the source fails.
//
// Invariant: each flight that the loader claims ends, in the goroutine that claimed it and
// not under that visitor's context, also when the source panics.
type loader struct {
	clock clock // read by each hit
	l1    *l1
	l2    *l2
	polls *polls

	source  Source
	limit   time.Duration // of a load
	missing time.Duration // how long "not found" is believed
	log     *slog.Logger
	failing repeatlog.Condition // look-ups of the source
	due     chan *Held          // refreshes requested and not begun

	loads, failures, joined, stale, refreshes, crowded atomic.Uint64

	lastFailure atomic.Int64 // Unix milliseconds; 0 = never
	retried     atomic.Int64 // when the last load failed, or one visitor retried for all; 0 = the last one succeeded
}

// answer is what the source said: a target, or that there is none.
type answer struct {
	target  link.Target
	missing bool
}

// serves reports whether e may be served without waiting, and requests its refresh.
func (l *loader) serves(e *Held) bool {
	now := l.clock.now()
	if e.Missing {
		return now < e.fresh
	}
	if now >= e.fresh || l.polls.disconnected(now) && l.revalidates(e, now) {
		// No visitor waits for a source that failed a moment ago.
		if now >= e.stale || !e.failed.Load() {
			return false
		}
		l.stale.Add(1)
	}
	if ask := e.ask.Load(); now >= ask && e.ask.CompareAndSwap(ask, now+int64(retryAfter)) {
		l.askRefresh(e)
	}
	return true
}

// revalidates reports whether a disconnected process asks for an entry again that it would call fresh otherwise. Where the source
// failed a moment ago one visitor tries, and the others are served what is held.
func (l *loader) revalidates(e *Held, now int64) bool {
	retried := l.retried.Load()
	return e.fresh-now > int64(disconnectedTTL) && (retried == 0 || now-retried >= int64(retryAfter) && l.retried.CompareAndSwap(retried, now))
}

// askRefresh queues e for a refresh; when the queue is full, a later reader retries.
func (l *loader) askRefresh(e *Held) {
	select {
	case l.due <- e:
	default:
		l.crowded.Add(1)
	}
}

// refresh loads what is due, one after the other. A failure is on the entry, and
// in the counts; readers retry.
func (l *loader) refresh(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-l.due:
			l.refreshes.Add(1)
			_, _ = l.load(ctx, l.l1.hash.Of(e.Key.Domain, e.Key.Code), e.Key, e, l.limit)
		}
	}
}

// fallback returns the entry that is served after a failed load, or nil. It is the present
// one, not that of before the load: a change may have come meanwhile.
func (l *loader) fallback(h uint64, k link.Key) *Held {
	e := l.l1.peek(h, k)
	if e == nil || e.Missing || l.clock.now() >= e.stale {
		return nil
	}
	l.stale.Add(1)
	return e
}

// load returns the entry of k after reading L2 or the source, or after waiting for the
// flight that does so already. have is what the caller found in L1, nil for nothing: when
// L1 has something else by now, that is the answer.
func (l *loader) load(ctx context.Context, h uint64, k link.Key, have *Held, limit time.Duration) (*Held, error) {
	e, f, lead := l.l1.claim(h, k, have)
	switch {
	case e != nil:
		return e, nil
	case !lead:
		l.joined.Add(1)
		return f.wait(ctx, k)
	}
	// A link with a bound of clicks is not shared; offer says why.
	// A disconnected process cannot vouch for what is shared.
	second := l.l2.store != nil && (have == nil || !have.Target.Limited) && !l.polls.disconnected(l.clock.now())
	l.lead(context.WithoutCancel(ctx), h, k, f, limit, second)
	return f.held, f.err
}

func (f *flight) wait(ctx context.Context, k link.Key) (*Held, error) {
	select {
	case <-f.done:
		return f.held, f.err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for %s: %w", k, context.Cause(ctx))
	}
}

// lead reads L2 where it may, and then the source until the answer is not below the
// floor, and ends the flight. The limit is that of the source; L2 has a deadline of its own.
func (l *loader) lead(ctx context.Context, h uint64, k link.Key, f *flight, limit time.Duration, second bool) {
	ended, came := false, time.Now()
	defer func() {
		if !ended { // the source panicked: the waiting look-ups must not hang
			l.fail(h, k, f, fmt.Errorf("look up %s: %w: source panicked", k, link.ErrUnavailable))
		}
	}()

	if second {
		if found, ok := l.l2.get(ctx, h, k); ok {
			if ended = l.l1.finish(h, k, f, found, false, l.lifetimes()); ended {
				return
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	primary, lag := f.primary, l.l1.lag
	if primary {
		lag = 0
	}
	var err error
	for range rounds {
		var found answer
		asOf, known := l.l2.asOf(l.clock.now(), lag)
		begun := time.Now()
		found, err = l.read(ctx, k, primary)
		if err != nil {
			break
		}
		if ended = l.l1.finish(h, k, f, found, primary, l.lifetimes()); ended {
			l.failing.LogRecovery(ctx, time.Now(), l.log, "link look-ups recovered")
			l.retried.Store(0)
			if second && known {
				l.l2.offer(k, found, asOf, time.Since(begun))
			}
			return
		}
		primary, lag = true, 0
		err = fmt.Errorf("%w: stale read, older than an announced change", link.ErrUnavailable)
	}
	ended = true
	// The operator learns what the load waited for; the visitor does not.
	l.failing.Log(ctx, time.Now(), l.log, slog.LevelWarn, "link look-up failed", err, slog.String("link", k.String()),
		slog.Duration("waited", time.Since(came)), slog.Duration("limit", l.limit))
	l.fail(h, k, f, fmt.Errorf("look up %s: %w", k, err))
}

// read reads the key once. Only the source's own link.ErrNotFound means missing.
func (l *loader) read(ctx context.Context, k link.Key, primary bool) (answer, error) {
	l.loads.Add(1)
	var t link.Target
	var err error
	if primary {
		var found link.Link
		if found, err = l.source.Get(ctx, k); err == nil {
			t, err = found.Leads()
		}
	} else {
		t, err = l.source.Lookup(ctx, k)
	}
	switch {
	case errors.Is(err, link.ErrNotFound):
		return answer{missing: true}, nil
	case err != nil:
		return answer{}, err
	}
	return answer{target: t}, nil
}

func (l *loader) fail(h uint64, k link.Key, f *flight, err error) {
	l.failures.Add(1)
	l.lastFailure.Store(time.Now().UnixMilli())
	l.retried.Store(l.clock.now())
	l.l1.fail(h, k, f, err)
}

// lifetimes returns how long what is loaded now is fresh at most.
func (l *loader) lifetimes() lifetimes {
	b := lifetimes{links: math.MaxInt64, missing: l.missing}
	if l.polls.staleness() > silence {
		b.missing = min(b.missing, disconnectedTTL)
	}
	if l.polls.disconnected(l.clock.now()) {
		b.links = disconnectedTTL
	}
	return b
}
