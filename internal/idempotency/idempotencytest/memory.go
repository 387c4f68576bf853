package idempotencytest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"curt/internal/idempotency"
	"curt/internal/link"
)

// Memory is the contract in its plainest form, without durability: the double of
// tests.
type Memory struct {
	mu      sync.Mutex
	records map[idempotency.Name]idempotency.Record // guarded by mu
}

var _ idempotency.Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{records: map[idempotency.Name]idempotency.Record{}}
}

// Len returns how many records there are.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.records)
}

// Find implements idempotency.Store.
func (m *Memory) Find(ctx context.Context, n idempotency.Name) (idempotency.Record, error) {
	if ctx.Err() != nil {
		return idempotency.Record{}, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[n]
	if !ok {
		return idempotency.Record{}, fmt.Errorf("find an idempotency key: %w", link.ErrNotFound)
	}
	return r, nil
}

// Claim implements idempotency.Store.
func (m *Memory) Claim(ctx context.Context, n idempotency.Name, r idempotency.Record, since time.Time) (idempotency.Record, error) {
	if ctx.Err() != nil {
		return idempotency.Record{}, context.Cause(ctx)
	}
	if n.Caller == "" || len(n.Caller) > link.MaxName || n.Key == "" || len(n.Key) > idempotency.MaxKey {
		return idempotency.Record{}, fmt.Errorf("claim an idempotency key: %w", link.ErrInvalid)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.records[n]; ok && !old.Created.Before(since) {
		return old, nil
	}
	m.records[n] = r
	return r, nil
}

// Change implements idempotency.Store.
func (m *Memory) Change(ctx context.Context, n idempotency.Name, from, to idempotency.Record) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.records[n] {
	case from, to:
		m.records[n] = to
		return nil
	}
	return fmt.Errorf("change an idempotency key: %w", link.ErrConflict)
}

// Release implements idempotency.Store.
func (m *Memory) Release(ctx context.Context, n idempotency.Name, r idempotency.Record) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records[n] == r {
		delete(m.records, n)
	}
	return nil
}

// Forget implements idempotency.Store.
func (m *Memory) Forget(ctx context.Context, before time.Time, limit int) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var old []idempotency.Name
	for n, r := range m.records {
		if r.Created.Before(before) {
			old = append(old, n)
		}
	}
	slices.SortFunc(old, func(a, b idempotency.Name) int { return m.records[a].Created.Compare(m.records[b].Created) })
	old = old[:min(len(old), limit)]
	for _, n := range old {
		delete(m.records, n)
	}
	return len(old), nil
}
