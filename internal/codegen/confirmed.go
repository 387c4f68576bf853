package codegen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/link"
)

// Confirmed leases from a source beside the link store, such as ZooKeeper, and has the store confirm each lease: it hands out
// nothing but ids that it moved the store's counter across. Ids are therefore unique whatever the source says. One that
// was restored from an old state, or emptied, is moved past the store's counter; a store
// that was restored follows the source. Only if both go back are ids leased again.
//
// A counter stands where the higher of both does. Raise, too, moves both.
type Confirmed struct {
	source, store Leaser
	log           *slog.Logger
	turns         chan struct{} // holds one token: callers of one process do not overtake each other between both counters
	behind        atomic.Uint64
}

var _ Leaser = (*Confirmed)(nil)

// NewConfirmed returns a Leaser over the source, confirmed by the store. log may be nil.
func NewConfirmed(source, store Leaser, log *slog.Logger) *Confirmed {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Confirmed{source: source, store: store, log: log, turns: make(chan struct{}, 1)}
	c.turns <- struct{}{}
	return c
}

// Corrections returns how often the source was behind the store and was moved.
func (c *Confirmed) Corrections() uint64 { return c.behind.Load() }

// farAhead is from how many ids on the source is too far ahead of the store to go on at once: other processes know
// the store's mark as it was up to a second ago, and rule out codes that lie more than margin above it.
const farAhead = margin / 2

// settle is how long the store's mark needs to reach all processes, which read it every second.
const settle = 2 * time.Second

// Lease implements Leaser.
func (c *Confirmed) Lease(ctx context.Context, counter string, n uint64) (uint64, error) {
	if n == 0 {
		return 0, fmt.Errorf("lease no ids from %s: %w", counter, link.ErrInvalid)
	}
	if err := c.lock(ctx); err != nil {
		return 0, err
	}
	defer c.unlock()
	for try := 1; ; try++ {
		first, err := c.source.Lease(ctx, counter, n)
		if err != nil {
			return 0, err
		}
		err = c.confirm(ctx, counter, first, first+n)
		switch {
		case err == nil:
			return first, nil
		case !errors.Is(err, link.ErrConflict):
			return 0, fmt.Errorf("confirm a lease from %s: %w", counter, err)
		}
		// Another process's range is above this one: its ids are lost, and the source is moved if it is behind.
		if err := c.catchUp(ctx, counter); err != nil {
			return 0, err
		}
		if !background.Sleep(ctx, rand.N(time.Millisecond*time.Duration(min(try, 20)))) {
			return 0, link.Unavailable(fmt.Errorf("lease from %s: %w", counter, context.Cause(ctx)))
		}
	}
}

// confirm moves the store's counter to the end of a range. link.ErrConflict = it stands above its beginning.
func (c *Confirmed) confirm(ctx context.Context, counter string, first, end uint64) error {
	for {
		mark, err := c.store.Leased(ctx, counter)
		switch {
		case err != nil:
			return err
		case mark > first:
			return link.ErrConflict
		case first-mark > farAhead:
			err = c.followFar(ctx, counter, mark, first)
		default:
			if err = c.store.Raise(ctx, counter, mark, end); err == nil {
				return nil
			}
		}
		if err != nil && !errors.Is(err, link.ErrConflict) {
			return err
		}
	}
}

// followFar moves the store far up, and waits until all processes know.
func (c *Confirmed) followFar(ctx context.Context, counter string, mark, first uint64) error {
	if err := c.store.Raise(ctx, counter, mark, first); err != nil {
		return err
	}
	c.log.WarnContext(ctx, "id leases were far ahead of the link store, skipped ids", slog.String("counter", counter), slog.Uint64("ids", first-mark))
	if !background.Sleep(ctx, settle) {
		return link.Unavailable(fmt.Errorf("wait until all servers know the counter: %w", context.Cause(ctx)))
	}
	return nil
}

// catchUp moves the source to where the store is, if it is behind.
func (c *Confirmed) catchUp(ctx context.Context, counter string) error {
	for {
		at, err := c.source.Leased(ctx, counter)
		if err != nil {
			return err
		}
		mark, err := c.store.Leased(ctx, counter)
		if err != nil || at >= mark {
			return err
		}
		err = c.source.Raise(ctx, counter, at, mark)
		if err == nil {
			c.behind.Add(1)
			c.log.WarnContext(ctx, "id leases were behind the link store, skipped ids", slog.String("counter", counter), slog.Uint64("ids", mark-at))
		}
		if !errors.Is(err, link.ErrConflict) {
			return err
		}
	}
}

// Leased implements Leaser.
func (c *Confirmed) Leased(ctx context.Context, counter string) (uint64, error) {
	at, err := c.source.Leased(ctx, counter)
	if err != nil {
		return 0, err
	}
	mark, err := c.store.Leased(ctx, counter)
	return max(at, mark), err
}

// Skip implements Leaser. The source follows at the next lease.
func (c *Confirmed) Skip(ctx context.Context, counter string, n uint64) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()
	mark, err := c.Leased(ctx, counter)
	if err != nil {
		return err
	}
	at, err := c.store.Leased(ctx, counter)
	if err != nil {
		return err
	}
	return c.store.Skip(ctx, counter, n+mark-min(mark, at))
}

// Raise implements Leaser. Of several callers the source lets one through, and the store decides whether that one was late.
func (c *Confirmed) Raise(ctx context.Context, counter string, from, to uint64) error {
	if to <= from {
		return fmt.Errorf("raise %s to %d: %w", counter, to, link.ErrInvalid)
	}
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()
	at, err := c.source.Leased(ctx, counter)
	if err != nil {
		return err
	}
	mark, err := c.store.Leased(ctx, counter)
	if err != nil {
		return err
	}
	if max(at, mark) != from {
		return fmt.Errorf("raise %s from %d: %w", counter, from, link.ErrConflict)
	}
	if err := c.source.Raise(ctx, counter, at, to); err != nil {
		return err
	}
	return c.store.Raise(ctx, counter, mark, to)
}

// lock takes the token. A mutex would not let go of a caller whose time is over.
func (c *Confirmed) lock(ctx context.Context) error {
	select {
	case <-c.turns:
		return nil
	case <-ctx.Done():
		return link.Unavailable(fmt.Errorf("wait for an id lease: %w", context.Cause(ctx)))
	}
}

func (c *Confirmed) unlock() { c.turns <- struct{}{} }
