package cachetest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"curt/internal/cache"
)

var errCut = errors.New("the subscription was cut")

// Bus is a cache.Bus in this process. It is safe for many goroutines.
type Bus struct {
	mu     sync.Mutex
	subs   []chan cache.Note
	silent bool
	down   error
	severs chan struct{}
}

// NewBus returns a Bus that nobody listens to.
func NewBus() *Bus { return &Bus{severs: make(chan struct{})} }

// SetDown makes Publish fail with err; nil ends it.
func (b *Bus) SetDown(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = err
}

// SetSilent loses every note without a word, as a connection that is half open does.
func (b *Bus) SetSilent(silent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent = silent
}

// Cut ends every subscription.
func (b *Bus) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.severs)
	b.severs = make(chan struct{})
}

// Publish implements cache.Bus.
func (b *Bus) Publish(_ context.Context, n cache.Note) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down != nil {
		return b.down
	}
	if b.silent {
		return nil
	}
	n.Changes = slices.Clone(n.Changes)
	for _, s := range b.subs {
		select {
		case s <- n:
		default: // a listener that is too slow is behind, as with any bus
		}
	}
	return nil
}

// Subscribe implements cache.Bus.
func (b *Bus) Subscribe(ctx context.Context, begun func(), hear func(cache.Note)) error {
	notes := make(chan cache.Note, 1024)
	b.mu.Lock()
	b.subs = append(b.subs, notes)
	severs := b.severs
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.subs = slices.DeleteFunc(b.subs, func(s chan cache.Note) bool { return s == notes })
	}()
	begun()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-severs:
			return errCut
		case n := <-notes:
			hear(n)
		}
	}
}
