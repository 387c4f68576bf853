package linktest

import (
	"context"
	"fmt"
	"time"

	"curt/internal/link"
)

// reserved is a reservation as Memory has it.
type reserved struct {
	workspace    link.WorkspaceID
	since, until int64 // Unix milliseconds
}

// reservation returns the reservation of a key that has not lapsed.
func (m *Memory) reservation(k link.Key, now time.Time) (link.Reservation, bool) {
	r, ok := m.reserved[k]
	if !ok || link.Lapsed(r.since, r.until, now.UnixMilli()) {
		return link.Reservation{}, false
	}
	return link.Reservation{
		Key: k, Workspace: r.workspace, Until: link.TimeOf(r.until), Left: time.Duration(r.until-now.UnixMilli()) * time.Millisecond,
	}, true
}

// Reserve implements link.Reserver.
func (m *Memory) Reserve(ctx context.Context, c link.Claim) (link.Reservation, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx, "reserve"); err != nil {
		return link.Reservation{}, false, err
	}
	if err := c.Validate(); err != nil {
		return link.Reservation{}, false, fmt.Errorf("reserve: %w", err)
	}
	now := m.Now()
	if _, taken := m.links[c.Key]; taken {
		return link.Reservation{}, false, fmt.Errorf("reserve %s: %w", c.Key, link.ErrExists)
	}
	if r, held := m.reservation(c.Key, now); held {
		if r.Workspace != c.Workspace {
			return link.Reservation{}, false, fmt.Errorf("reserve %s: %w", c.Key, &link.HeldError{Reservation: r})
		}
		return r, true, nil
	}
	holds := 0
	for k := range m.reserved {
		if r, held := m.reservation(k, now); held && r.Workspace == c.Workspace {
			holds++
		}
	}
	if holds >= c.Most {
		return link.Reservation{}, false, fmt.Errorf("reserve %s: %w", c.Key, link.ErrTooManyReservations)
	}
	since := now.UnixMilli()
	m.reserved[c.Key] = reserved{c.Workspace, since, since + c.For.Milliseconds()}
	r, _ := m.reservation(c.Key, now)
	return r, false, nil
}

// redeem ends the reservation that a create of l meets, or says why it may not.
func (m *Memory) redeem(l link.Link) error {
	if _, met := m.reserved[l.Key]; !met {
		return nil
	}
	r, held := m.reservation(l.Key, m.Now())
	switch {
	case l.CodeKind != link.Chosen:
		return link.ErrExists
	case held && r.Workspace != l.Workspace:
		return &link.HeldError{Reservation: r}
	}
	delete(m.reserved, l.Key)
	return nil
}

// Release implements link.Reserver.
func (m *Memory) Release(ctx context.Context, k link.Key, w link.WorkspaceID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx, "release"); err != nil {
		return err
	}
	if r, held := m.reservation(k, m.Now()); !held || w != "" && r.Workspace != w {
		return fmt.Errorf("release %s: %w", k, link.ErrNotFound)
	}
	delete(m.reserved, k)
	return nil
}

// Occupants implements link.Reserver.
func (m *Memory) Occupants(ctx context.Context, keys []link.Key) ([]link.Occupant, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx, "find occupants"); err != nil {
		return nil, err
	}
	if len(keys) > link.MaxPage {
		return nil, fmt.Errorf("find the occupants of %d keys: %w", len(keys), link.ErrInvalid)
	}
	all := make([]link.Occupant, len(keys))
	for i, k := range keys {
		if _, all[i].Linked = m.links[k]; !all[i].Linked {
			all[i].Reservation, _ = m.reservation(k, m.Now())
		}
	}
	return all, nil
}

// RemoveLapsed implements link.Reserver.
func (m *Memory) RemoveLapsed(ctx context.Context, n int) (removed int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx, "remove lapsed reservations"); err != nil {
		return 0, err
	}
	for k := range m.reserved {
		if _, held := m.reservation(k, m.Now()); !held && removed < n {
			delete(m.reserved, k)
			removed++
		}
	}
	return removed, nil
}
