package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/backend/dynamodb/state"
	"curt/internal/link"
	"curt/internal/move"
)

// rounds bounds how often the rest is copied before the freeze, and attempts how often servers may thaw before
// the end.
const (
	rounds   = 20
	small    = 200 // changes that are few enough to freeze for
	attempts = 5
)

// lastTime bounds what is done while servers refuse writes.
const lastTime = 10 * time.Second

// handOver freezes the servers of the origin for the last changes, and switches.
func (r *relay) handOver(ctx context.Context) error {
	var err error
	for range attempts {
		for range rounds {
			n, err := r.catchUp(ctx, r.logs)
			if err != nil {
				return err
			}
			if n < small {
				break
			}
		}
		if err = r.tryToSwitch(ctx); !errors.Is(err, errThawed) && !errors.Is(err, state.ErrThawed) {
			return err
		}
		r.state.Ready = false
		if err := r.save(ctx); err != nil {
			return err
		}
		r.Note("the servers did not wait, retrying: %v", err)
	}
	return fmt.Errorf("the servers were frozen %d times: %w", attempts, err)
}

func (r *relay) tryToSwitch(ctx context.Context) (err error) {
	began := time.Now()
	f, err := r.from.freeze(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Release(context.WithoutCancel(ctx))) }()
	within, cancel := context.WithTimeoutCause(ctx, lastTime, fmt.Errorf("not done within %s: %w", lastTime, errThawed))
	defer cancel()
	if err := r.last(within); err != nil {
		return errors.Join(fmt.Errorf("last changes: %w", err), context.Cause(within))
	}
	r.state.Ready = true
	if err := r.save(ctx); err != nil {
		return err
	}
	if err := f.Switch(ctx, r.Shown); err != nil {
		return err
	}
	r.result.Frozen = time.Since(began)
	return nil
}

// last writes the last changes of a frozen store, and has the sink go on where it ends.
func (r *relay) last(ctx context.Context) (err error) {
	from, err := r.from.last(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if _, err := r.catchUp(ctx, from); err != nil {
		return err
	}
	issued, err := r.from.Issued(ctx)
	if err != nil {
		return err
	}
	return r.to.GoOn(ctx, issued)
}

// finish does what follows the switch: it lets servers begin, and adds what an index had not shown.
func (r *relay) finish(ctx context.Context) error {
	if !r.state.Switched {
		r.state.Switched = true
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	r.Note("the links are in %s: servers with CURT_LINKS set to it serve now; direct traffic to them, then end the others", r.Shown)
	if r.state.Mended || !r.from.late() {
		return nil
	}
	if err := r.mend(ctx); err != nil {
		return fmt.Errorf("read the links once more: %w", err)
	}
	r.state.Mended = true
	return r.save(ctx)
}

// mend adds links that the last changes did not have. Nobody writes those any more where they come from,
// and nobody can have created them here: ids go on behind them.
func (r *relay) mend(ctx context.Context) error {
	for after := link.Cursor(""); ; {
		page, damaged, next, err := r.from.Page(ctx, after, link.MaxPage)
		if err == nil {
			err = move.Sound(damaged)
		}
		var lost []link.Link
		if err == nil {
			lost, err = r.lost(ctx, page)
		}
		if err == nil && len(lost) > 0 {
			r.Note("%d links came late", len(lost))
			err = r.put(ctx, lost)
		}
		if err != nil || next == "" {
			return err
		}
		after = next
	}
}

// lost returns the links that the sink does not have.
func (r *relay) lost(ctx context.Context, page []link.Link) (lost []link.Link, err error) {
	keys := make([]link.Key, len(page))
	for i := range page {
		keys[i] = page[i].Key
	}
	stored, err := r.to.Get(ctx, keys)
	if err != nil || len(stored) == len(page) {
		return nil, err
	}
	has := make(map[link.Key]bool, len(stored))
	for i := range stored {
		has[stored[i].Key] = true
	}
	for i := range page {
		if !has[page[i].Key] {
			lost = append(lost, page[i])
		}
	}
	return lost, nil
}
