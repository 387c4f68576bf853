package jobleasetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"curt/internal/joblease"
	"curt/internal/link"
)

// Memory is the contract in its plainest form, without durability: the double of tests.
type Memory struct {
	mu   sync.Mutex
	jobs map[string]held // guarded by mu
}

type held struct {
	lease joblease.Lease
	until time.Time
}

var _ joblease.Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{jobs: map[string]held{}} }

// Acquire implements joblease.Store.
func (m *Memory) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (joblease.Lease, error) {
	if ctx.Err() != nil {
		return joblease.Lease{}, context.Cause(ctx)
	}
	if name == "" || len(name) > joblease.MaxName || holder == "" || len(holder) > joblease.MaxName || ttl < time.Millisecond {
		return joblease.Lease{}, fmt.Errorf("acquire %q: %w", name, link.ErrInvalid)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.jobs[name]
	if old.lease.Holder != holder && time.Now().Before(old.until) {
		return joblease.Lease{}, joblease.ErrHeld
	}
	l := joblease.Lease{Name: name, Holder: holder, Fence: old.lease.Fence + 1}
	m.jobs[name] = held{l, time.Now().Add(ttl)}
	return l, nil
}

// Renew implements joblease.Store.
func (m *Memory) Renew(ctx context.Context, l joblease.Lease, ttl time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.jobs[l.Name]; old.lease != l || old.until.IsZero() {
		return joblease.ErrLost
	}
	m.jobs[l.Name] = held{l, time.Now().Add(ttl)}
	return nil
}

// Release implements joblease.Store.
func (m *Memory) Release(ctx context.Context, l joblease.Lease) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs[l.Name].lease == l {
		m.jobs[l.Name] = held{lease: l}
	}
	return nil
}
