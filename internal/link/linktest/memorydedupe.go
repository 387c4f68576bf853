package linktest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"curt/internal/link"
)

// FindSame implements link.Deduper.
func (m *Memory) FindSame(ctx context.Context, wanted link.Link, now time.Time) (link.Link, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx, "find the same link"); err != nil {
		return link.Link{}, err
	}
	return m.findSame(wanted, now)
}

func (m *Memory) findSame(wanted link.Link, now time.Time) (link.Link, error) {
	var twins []link.Link
	for _, l := range m.links {
		if l.Workspace == wanted.Workspace && l.Destination == wanted.Destination && l.Expires.Equal(wanted.Expires) &&
			l.Status == link.Active && l.Safety == link.Clean && l.MaxClicks == 0 {
			twins = append(twins, l)
		}
	}
	slices.SortFunc(twins, byAge)
	for _, l := range twins[:min(len(twins), link.MaxTwins)] {
		if l.Equivalent(wanted, now) {
			return copyOf(l), nil
		}
	}
	return link.Link{}, fmt.Errorf("find the same link: %w", link.ErrNotFound)
}

// FindOrCreate implements link.Deduper.
func (m *Memory) FindOrCreate(ctx context.Context, l link.Link, now time.Time) (link.Link, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx, "find or create"); err != nil {
		return link.Link{}, false, err
	}
	return m.findOrCreate(l, now)
}

func (m *Memory) findOrCreate(l link.Link, now time.Time) (link.Link, bool, error) {
	if err := l.Validate(); err != nil {
		return link.Link{}, false, fmt.Errorf("find or create: %w", err)
	}
	if own, there := m.links[l.Key]; !there || own.ID != l.ID {
		if same, err := m.findSame(l, now); err == nil {
			return same, true, nil
		}
	}
	stored, err := m.create(l)
	return stored, false, err
}
