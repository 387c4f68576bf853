package feedtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync"

	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// Moving is the code of a link that is in another partition of Memory after every second version.
const Moving link.Code = "feed-0"

// Memory is the contract in its plainest form, without durability and bounds: the double of tests.
type Memory struct {
	*linktest.Memory

	mu        sync.Mutex
	positions map[string]position // guarded by mu
	first     []link.Sequence     // that is still there, by partition; guarded by mu
}

type position struct {
	fence uint64
	at    link.Position
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store whose change log has so many partitions.
func NewMemory(partitions int) *Memory {
	return &Memory{
		Memory: linktest.NewMemory(), positions: map[string]position{}, first: slices.Repeat([]link.Sequence{1}, partitions),
	}
}

// partitions returns the change log and what of it was trimmed.
func (m *Memory) partitions(ctx context.Context) (all [][]link.Event, first []link.Sequence, err error) {
	m.mu.Lock()
	first = slices.Clone(m.first)
	m.mu.Unlock()
	events, _, err := m.Memory.Events(ctx, "", math.MaxInt)
	all = make([][]link.Event, len(first))
	for _, e := range events {
		h := fnv.New32a()
		_, _ = h.Write([]byte(e.Key.String())) // never fails
		n := h.Sum32()
		if e.Key.Code == Moving {
			n += uint32(e.Version / 2)
		}
		of := &all[n%uint32(len(all))]
		e.Partition, e.Sequence = uint16(n%uint32(len(all))), link.Sequence(len(*of)+1)
		*of = append(*of, e)
	}
	return all, first, err
}

// Events implements link.EventLog. What the last partition has comes first.
func (m *Memory) Events(ctx context.Context, after link.Position, n int) (page []link.Event, next link.Position, err error) {
	all, first, err := m.partitions(ctx)
	heads, invalid := after.Heads()
	if err = errors.Join(err, invalid); err != nil {
		return nil, "", err
	}
	if len(heads) > len(all) {
		return nil, "", fmt.Errorf("position %q of %d partitions: %w", after, len(all), link.ErrConflict)
	}
	for i, of := range slices.Backward(all) {
		p := uint16(i)
		at := heads.At(p)
		if at+1 < first[i] {
			return nil, "", fmt.Errorf("changes of partition %d up to %d were trimmed: %w", i, first[i]-1, link.ErrConflict)
		}
		if err := at.Continues(0, link.Sequence(len(of))); err != nil {
			return nil, "", err
		}
		of = of[at:min(int(at)+n-len(page), len(of))]
		page, heads = append(page, of...), heads.Set(p, at+link.Sequence(len(of)))
	}
	return page, heads.Position(), nil
}

// ExpiryChanges implements link.EventLog.
func (m *Memory) ExpiryChanges(ctx context.Context, after link.Position, n int) ([]link.Key, link.Position, bool, error) {
	return link.ReadExpiryChanges(ctx, m, after, n)
}

// Changes implements link.Store.
func (m *Memory) Changes(ctx context.Context, after link.Position, n int) (page []link.Change, next link.Position, err error) {
	events, next, err := m.Events(ctx, after, n)
	for i := range events {
		page = append(page, events[i].Change)
	}
	return page, next, err
}

// Head implements link.Store.
func (m *Memory) Head(ctx context.Context) (link.Position, error) {
	all, _, err := m.partitions(ctx)
	var heads link.Heads
	for _, of := range all {
		heads = append(heads, link.Sequence(len(of)))
	}
	return heads.Position(), err
}

// Trim shortens a partition of the log to what begins with an entry.
func (m *Memory) Trim(partition uint16, first link.Sequence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first[partition] = first
}

// Followers returns the positions of its followers.
func (m *Memory) Followers() feed.Positions[link.Position] { return m }

// CreateFollowers returns the positions of those who follow creates.
func (m *Memory) CreateFollowers() feed.Positions[link.Position] { return m }

// BothFollowers returns the positions of those who follow both logs.
func (m *Memory) BothFollowers() feed.Positions[link.Position] { return m }

// FollowerPosition implements feed.Positions.
func (m *Memory) FollowerPosition(ctx context.Context, name string) (link.Position, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, begun := m.positions[name]
	return p.at, begun, context.Cause(ctx)
}

// MoveFollower implements feed.Positions.
func (m *Memory) MoveFollower(ctx context.Context, name string, fence uint64, to link.Position) error {
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
