package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/clicks"
	"curt/internal/link"
)

// lateRollups are counts that are elsewhere, opened when somebody asks for them first: a
// server that only follows links starts and serves without. Until then clicks wait in the
// click log.
type lateRollups struct {
	open func(context.Context) (rollups, error)
	log  *slog.Logger

	state atomic.Pointer[lateState] // nil = Run has not tried yet

	mu     sync.Mutex
	store  rollups // guarded by mu; nil = not open yet
	closed bool    // guarded by mu
}

// opened returns the store, and opens it if need be: whoever asks meanwhile waits, for as
// long as a connection may take.
func (l *lateRollups) opened(ctx context.Context) (rollups, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("statistics: closed: %w", link.ErrUnavailable)
	}
	if l.store == nil {
		store, err := l.open(ctx)
		if err != nil {
			return nil, fmt.Errorf("open the statistics: %w: %w", link.ErrUnavailable, err)
		}
		l.store = store
	}
	return l.store, nil
}

// lateRetry is how long the server waits before it asks for its statistics again.
const lateRetry = 5 * time.Second

// Run opens the store, however long that takes, and looks after it until ctx ends.
func (l *lateRollups) Run(ctx context.Context) error {
	for told := false; ; told = true {
		store, err := l.opened(ctx)
		l.state.Store(&lateState{store, err})
		if err == nil {
			return store.Run(ctx)
		}
		if !told && ctx.Err() == nil {
			l.log.WarnContext(ctx, "the statistics are away; clicks wait in the click log", slog.Any("err", err))
		}
		wait(ctx, lateRetry, nil)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told
		}
	}
}

// lateState is what Run found last: a store, or why there is none.
type lateState struct {
	store rollups
	err   error
}

// Healthy returns nil while the store answers; else why not. It asks nobody.
func (l *lateRollups) Healthy() error {
	state := l.state.Load()
	switch {
	case state == nil:
		return errNotAskedYet
	case state.err != nil:
		return state.err
	}
	if h, ok := state.store.(answering); ok {
		return h.Healthy()
	}
	return nil
}

// answering tells whether what it stands for answers, and asks nobody.
type answering interface{ Healthy() error }

var errNotAskedYet = errors.New("nobody has asked yet")

// Close closes the store, if it is open.
func (l *lateRollups) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.store == nil {
		return nil
	}
	return l.store.Close()
}

// Load implements clicks.RollupStore.
func (l *lateRollups) Load(ctx context.Context) (clicks.State, error) {
	store, err := l.opened(ctx)
	if err != nil {
		return clicks.State{}, err
	}
	return store.Load(ctx)
}

// Apply implements clicks.RollupStore.
func (l *lateRollups) Apply(ctx context.Context, b clicks.Batch) error {
	store, err := l.opened(ctx)
	if err != nil {
		return err
	}
	return store.Apply(ctx, b)
}

// Totals implements clicks.RollupStore.
func (l *lateRollups) Totals(ctx context.Context, keys []link.Key) ([]clicks.Total, uint64, error) {
	store, err := l.opened(ctx)
	if err != nil {
		return nil, 0, err
	}
	return store.Totals(ctx, keys)
}

// Read implements clicks.RollupStore.
func (l *lateRollups) Read(ctx context.Context, k link.Key, want clicks.Want, spans ...clicks.Span) (clicks.Stored, error) {
	store, err := l.opened(ctx)
	if err != nil {
		return clicks.Stored{}, err
	}
	return store.Read(ctx, k, want, spans...)
}

// Sum implements clicks.RollupStore.
func (l *lateRollups) Sum(ctx context.Context, k link.Key, into *clicks.Sums, spans ...clicks.Span) (uint64, error) {
	store, err := l.opened(ctx)
	if err != nil {
		return 0, err
	}
	return store.Sum(ctx, k, into, spans...)
}

// Counted implements search.Counts.
func (l *lateRollups) Counted(ctx context.Context) (uint64, error) {
	store, err := l.opened(ctx)
	if err != nil {
		return 0, err
	}
	return store.Counted(ctx)
}

// Count implements search.Counts.
func (l *lateRollups) Count(ctx context.Context, keys []link.Key) ([]uint64, error) {
	store, err := l.opened(ctx)
	if err != nil {
		return nil, err
	}
	return store.Count(ctx, keys)
}

// Clicked implements search.Counts.
func (l *lateRollups) Clicked(ctx context.Context, after int64, n int) ([]link.Key, int64, error) {
	store, err := l.opened(ctx)
	if err != nil {
		return nil, 0, err
	}
	return store.Clicked(ctx, after, n)
}
