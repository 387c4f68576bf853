package feedtest

import (
	"context"
	"fmt"
	"sync"

	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// Memory is the contract in its plainest form, without durability and bounds: the double of tests.
type Memory struct {
	*linktest.Memory

	mu        sync.Mutex
	positions map[string]position // guarded by mu
	first     link.Sequence       // that is still there; guarded by mu
}

type position struct {
	fence uint64
	at    link.Sequence
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{Memory: linktest.NewMemory(), positions: map[string]position{}, first: 1}
}

// Events implements link.EventLog.
func (m *Memory) Events(ctx context.Context, after link.Sequence, n int) ([]link.Event, error) {
	m.mu.Lock()
	first := m.first
	m.mu.Unlock()
	if after+1 < first {
		return nil, fmt.Errorf("changes up to %d were trimmed: %w", first-1, link.ErrConflict)
	}
	return m.Memory.Events(ctx, after, n)
}

// Trim shortens the log to what begins with an entry.
func (m *Memory) Trim(first link.Sequence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first = first
}

// Followers returns the positions of its followers.
func (m *Memory) Followers() feed.Positions[link.Sequence] { return m }

// FollowerPosition implements feed.Positions.
func (m *Memory) FollowerPosition(ctx context.Context, name string) (link.Sequence, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, begun := m.positions[name]
	return p.at, begun, context.Cause(ctx)
}

// MoveFollower implements feed.Positions.
func (m *Memory) MoveFollower(ctx context.Context, name string, fence uint64, to link.Sequence) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if fence < m.positions[name].fence {
		return fmt.Errorf("move %s: %w", name, link.ErrConflict)
	}
	m.positions[name] = position{fence, to}
	return nil
}

// ForgetFollower implements feed.Positions.
func (m *Memory) ForgetFollower(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.positions, name)
	return nil
}
