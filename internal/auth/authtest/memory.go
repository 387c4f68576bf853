package authtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
)

// Memory is the auth.Store by which others are judged: the contract, written as
// plainly as possible. It serves tests that need a store.
type Memory struct {
	mu      sync.Mutex
	keys    map[link.ID]auth.Key           // guarded by mu, as all below
	secrets map[auth.Sum]secret            // of the keys
	plans   map[link.WorkspaceID]auth.Plan // of every workspace
	kept    map[link.ID]bool               // revoked keys whose shares go on
	finds   int
}

type secret struct {
	key   link.ID
	until time.Time // zero = current
}

// NewMemory returns a store with the two workspaces that every store begins with.
func NewMemory() *Memory {
	return &Memory{
		keys: map[link.ID]auth.Key{}, secrets: map[auth.Sum]secret{}, kept: map[link.ID]bool{},
		plans: map[link.WorkspaceID]auth.Plan{
			link.WorkspaceDefault: auth.PlanDefault, link.WorkspaceAnonymous: auth.PlanAnonymous,
		},
	}
}

// Finds returns how often Find was called.
func (m *Memory) Finds() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.finds
}

// enter takes the lock, unless ctx has ended.
func (m *Memory) enter(ctx context.Context) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("keys in memory: %w", context.Cause(ctx))
	}
	m.mu.Lock()
	return m.mu.Unlock, nil
}

// with returns the key as it is read: with the plan of its workspace.
func (m *Memory) with(k auth.Key) auth.Key {
	k.Plan, k.Scopes = m.plans[k.Workspace], slices.Clone(k.Scopes)
	return k
}

// Create implements auth.Store.
func (m *Memory) Create(ctx context.Context, k auth.Key, plan auth.Plan, sum auth.Sum) (auth.Key, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return auth.Key{}, err
	}
	defer leave()
	_, sameID := m.keys[k.ID]
	_, sameSum := m.secrets[sum]
	if sameID || sameSum {
		return auth.Key{}, link.ErrExists
	}
	if _, there := m.plans[k.Workspace]; !there {
		m.plans[k.Workspace] = auth.PlanRegistered
	}
	if plan != "" {
		m.plans[k.Workspace] = plan
	}
	k.Scopes = slices.Clone(k.Scopes)
	k.Created, k.Expires, k.Used = stored(k.Created), stored(k.Expires), stored(k.Used)
	m.keys[k.ID], m.secrets[sum] = k, secret{key: k.ID}
	return m.with(k), nil
}

// stored is a time as stores keep it.
func stored(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// Find implements auth.Store.
func (m *Memory) Find(ctx context.Context, sum auth.Sum) (auth.Found, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return auth.Found{}, err
	}
	defer leave()
	m.finds++
	s, ok := m.secrets[sum]
	if !ok {
		return auth.Found{}, auth.ErrNoKey
	}
	return auth.Found{Key: m.with(m.keys[s.key]), Sum: sum, Until: s.until}, nil
}

// Get implements auth.Store.
func (m *Memory) Get(ctx context.Context, id link.ID) (auth.Key, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return auth.Key{}, err
	}
	defer leave()
	k, ok := m.keys[id]
	if !ok {
		return auth.Key{}, auth.ErrNoKey
	}
	return m.with(k), nil
}

// List implements auth.Store.
func (m *Memory) List(ctx context.Context, f auth.KeyFilter, p auth.KeyPage) ([]auth.Key, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var keys []auth.Key
	for _, k := range m.keys {
		if (f.Workspace == "" || f.Workspace == k.Workspace) && (p.Before.IsZero() || bytes.Compare(k.ID[:], p.Before[:]) < 0) {
			keys = append(keys, m.with(k))
		}
	}
	slices.SortFunc(keys, func(a, b auth.Key) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	return keys[:min(len(keys), p.Limit)], nil
}

// Revoke implements auth.Store.
func (m *Memory) Revoke(ctx context.Context, id link.ID, keepShares bool) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if _, ok := m.keys[id]; !ok {
		return auth.ErrNoKey
	}
	delete(m.keys, id)
	if keepShares {
		m.kept[id] = true
	}
	for sum, s := range m.secrets {
		if s.key == id {
			delete(m.secrets, sum)
		}
	}
	return nil
}

// Vouches implements auth.Store.
func (m *Memory) Vouches(ctx context.Context, id link.ID) (bool, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	_, there := m.keys[id]
	return there || m.kept[id], nil
}

// Rotate implements auth.Store.
func (m *Memory) Rotate(ctx context.Context, id link.ID, sum auth.Sum, until time.Time) (auth.Key, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return auth.Key{}, err
	}
	defer leave()
	k, ok := m.keys[id]
	if !ok {
		return auth.Key{}, auth.ErrNoKey
	}
	if _, taken := m.secrets[sum]; taken {
		return auth.Key{}, link.ErrExists
	}
	for old, s := range m.secrets {
		switch {
		case s.key != id:
		case s.until.IsZero() && !until.IsZero():
			m.secrets[old] = secret{key: id, until: stored(until)}
		default:
			delete(m.secrets, old)
		}
	}
	m.secrets[sum] = secret{key: id}
	return m.with(k), nil
}

// Touch implements auth.Store.
func (m *Memory) Touch(ctx context.Context, used map[link.ID]time.Time) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for id, t := range used {
		if k, ok := m.keys[id]; ok && stored(t).After(k.Used) {
			k.Used = stored(t)
			m.keys[id] = k
		}
	}
	return nil
}
