package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"curt/internal/link"
)

// rounds bounds how often one flight asks again because a change overtook it. Each
// round after the first reads the primary, so a second one needs a change within
// the first; five in one load mean a key that changes faster than it can be read.
const rounds = 5

// flight is one load of one key. Whoever looks the key up meanwhile waits for it.
//
// A flight meets changes by its floor: Changed raises it, and what the flight read
// is given to anybody only if it is not below. So it does not matter when the
// source read what it answers.
type flight struct {
	done chan struct{} // closed when held and err are set

	// Guarded by the shard's mutex until done is closed.
	floor link.Version // nothing below may be given
	void  bool         // everything may have changed: what is being read does not count
	held  *Held
	err   error
}

// answer is what the source said: a target, or that there is none.
type answer struct {
	target  link.Target
	missing bool
}

// load returns the entry of k after asking the source, or after waiting for whoever
// asks already. have is what the caller found in L1, nil for nothing: when L1 holds
// something else by now, that is the answer.
func (c *Tiered) load(ctx context.Context, h uint64, k link.Key, have *Held, limit time.Duration) (*Held, error) {
	s := c.shard(h)
	s.mu.Lock()
	if e := c.peek(h, k); e != nil && e != have {
		s.mu.Unlock()
		return e, nil
	}
	if f := s.flights[k]; f != nil {
		s.mu.Unlock()
		c.counts.joined.Add(1)
		return f.wait(ctx, k)
	}
	now := c.clock()
	f := &flight{done: make(chan struct{}), floor: s.floors.of(k, now)}
	primary := f.floor > 0 || now < c.primaryUntil.Load()
	s.flights[k] = f
	s.mu.Unlock()

	// Of a link with a bound of clicks nothing is shared, as offer says.
	second := c.cfg.L2 != nil && (have == nil || !have.Target.Limited)
	c.lead(context.WithoutCancel(ctx), s, h, k, f, leading{limit: limit, primary: primary, second: second})
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

// leading says how a flight is led.
type leading struct {
	limit   time.Duration // of asking the source; L2 has a deadline of its own
	primary bool          // only the primary counts
	second  bool          // L2 may be asked
}

// lead asks L2 where it may, and then the source until the answer is not below
// the floor, and ends the flight. It runs in the goroutine of whoever came first, so that no load outlives
// its reader unowned, but not under that reader's context.
func (c *Tiered) lead(ctx context.Context, s *shard, h uint64, k link.Key, f *flight, how leading) {
	ended, came := false, time.Now()
	defer func() {
		if !ended { // the source panicked: nobody may wait for ever
			c.fail(s, h, k, f, fmt.Errorf("look up %s: %w: source panicked", k, link.ErrUnavailable))
		}
	}()

	if how.second {
		if found, ok := c.fromShared(ctx, h, k); ok {
			if ended = c.settle(s, h, k, f, found, false); ended {
				return
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, how.limit)
	defer cancel()
	primary := how.primary
	var err error
	for range rounds {
		var found answer
		asOf, known := c.recent.asOf(c.clock(), c.lagOf(primary))
		begun := time.Now()
		found, err = c.ask(ctx, k, primary)
		if err != nil {
			break
		}
		if ended = c.settle(s, h, k, f, found, primary); ended {
			c.answered(ctx)
			if how.second && known {
				c.offer(k, found, asOf, time.Since(begun))
			}
			return
		}
		primary = true
		err = fmt.Errorf("%w: its answer is older than an announced change", link.ErrUnavailable)
	}
	ended = true
	c.unanswered(ctx, k, err, time.Since(came))
	c.fail(s, h, k, f, fmt.Errorf("look up %s: %w", k, err))
}

// unanswered tells the operator what a load waited for, which its visitor is not told.
func (c *Tiered) unanswered(ctx context.Context, k link.Key, err error, waited time.Duration) {
	if again, due := c.failing.Met(time.Now()); due {
		c.cfg.Log.WarnContext(ctx, "a link cannot be looked up", slog.String("link", k.String()),
			slog.Duration("waited", waited), slog.Duration("limit", c.cfg.LoadTimeout), slog.Any("err", err), again)
	}
}

func (c *Tiered) answered(ctx context.Context) {
	if sum, due := c.failing.Over(time.Now()); due {
		c.cfg.Log.InfoContext(ctx, "links can be looked up again", sum)
	}
}

// ask reads the key once. Only the source's own link.ErrNotFound means missing.
func (c *Tiered) ask(ctx context.Context, k link.Key, primary bool) (answer, error) {
	c.counts.loads.Add(1)
	var t link.Target
	var err error
	if primary {
		var l link.Link
		if l, err = c.source.Get(ctx, k); err == nil {
			t, err = l.Leads()
		}
	} else {
		t, err = c.source.Lookup(ctx, k)
	}
	switch {
	case errors.Is(err, link.ErrNotFound):
		return answer{missing: true}, nil
	case err != nil:
		return answer{}, err
	}
	return answer{target: t}, nil
}

// settle ends the flight with what was found, unless a change says that it is too
// old; then the caller asks the primary.
func (c *Tiered) settle(s *shard, h uint64, k link.Key, f *flight, found answer, primary bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := found.target.Version
	if f.void || version < f.floor {
		f.void = false // the next round begins after whatever voided this one
		return false
	}
	// A replica may be behind what was already read; the primary's word is final.
	if e := c.peek(h, k); e != nil && version < e.Target.Version && !primary {
		return false
	}
	f.held = c.hold(k, found, time.Now())
	c.l1.Set(h, f.held)
	c.end(s, k, f)
	return true
}

// fail ends the flight without an answer. What L1 holds stays, marked so that the
// next readers do not wait in vain.
func (c *Tiered) fail(s *shard, h uint64, k link.Key, f *flight, err error) {
	c.counts.failures.Add(1)
	c.counts.failed.Store(time.Now().UnixMilli())
	s.mu.Lock()
	defer s.mu.Unlock()
	_, newer := errors.AsType[*link.NewerError](err)
	switch e := c.peek(h, k); {
	case e == nil || e.Missing:
	case newer: // what it needs now, the answer of before passes over
		c.l1.Invalidate(h)
	default:
		e.failed.Store(true)
		e.ask.Store(c.clock() + int64(retryAfter))
	}
	f.err = err
	c.end(s, k, f)
}

// end lets the waiters go; s.mu is held.
func (*Tiered) end(s *shard, k link.Key, f *flight) {
	delete(s.flights, k)
	close(f.done)
}

// lagOf is how far an answer may be behind, in nanoseconds.
func (c *Tiered) lagOf(primary bool) int64 {
	if primary {
		return 0
	}
	return int64(c.cfg.Lag)
}
