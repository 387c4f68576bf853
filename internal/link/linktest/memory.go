package linktest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"curt/internal/link"
)

// Memory is the model of a link store: the contract in its plainest form, without
// durability. It implements every optional interface and is the double of tests.
type Memory struct {
	Now func() time.Time // the clock of reservations; set before use, default time.Now

	mu      sync.RWMutex
	closed  bool                   // guarded by mu, as all below
	links   map[link.Key]link.Link // tombstones included
	ids     map[owned]link.Key
	keys    []link.Key // in the order of creation
	changes []link.Event

	reserved map[link.Key]reserved
}

type owned struct {
	workspace link.WorkspaceID
	id        link.ID
}

// The optional interfaces that Memory implements.
var (
	_ link.Store    = (*Memory)(nil)
	_ link.Spender  = (*Memory)(nil)
	_ link.Deduper  = (*Memory)(nil)
	_ link.Batcher  = (*Memory)(nil)
	_ link.Reserver = (*Memory)(nil)
)

// NewMemory returns an empty model.
func NewMemory() *Memory {
	return &Memory{Now: time.Now, links: make(map[link.Key]link.Link), ids: make(map[owned]link.Key), reserved: make(map[link.Key]reserved)}
}

// ready says whether an operation may go on. Memory never waits, so it looks at
// the context once.
func (m *Memory) ready(ctx context.Context, op string) error {
	if m.closed {
		return fmt.Errorf("%s: closed: %w", op, link.ErrUnavailable)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	}
	return nil
}

// Lookup implements link.Store.
func (m *Memory) Lookup(ctx context.Context, k link.Key) (link.Target, error) {
	l, err := m.Get(ctx, k)
	if err != nil {
		return link.Target{}, err
	}
	return l.Leads()
}

// Get implements link.Store.
func (m *Memory) Get(ctx context.Context, k link.Key) (link.Link, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx, "get"); err != nil {
		return link.Link{}, err
	}
	l, ok := m.links[k]
	if !ok {
		return link.Link{}, fmt.Errorf("get %s: %w", k, link.ErrNotFound)
	}
	return copyOf(l), nil
}

// Create implements link.Store.
func (m *Memory) Create(ctx context.Context, l link.Link) (link.Link, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx, "create"); err != nil {
		return link.Link{}, err
	}
	return m.create(l)
}

// CreateMany implements link.Batcher.
func (m *Memory) CreateMany(ctx context.Context, now time.Time, entries []link.Creation) ([]link.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx, "create many"); err != nil {
		return nil, err
	}
	results := make([]link.Result, len(entries))
	for i, e := range entries {
		r := &results[i]
		if e.Dedupe {
			r.Link, r.Found, r.Err = m.findOrCreate(e.Link, now)
		} else {
			r.Link, r.Err = m.create(e.Link)
		}
	}
	return results, nil
}

func (m *Memory) create(l link.Link) (link.Link, error) {
	if err := l.Validate(); err != nil {
		return link.Link{}, fmt.Errorf("create: %w", err)
	}
	switch other, taken := m.links[l.Key]; {
	case taken && other.ID == l.ID:
		return copyOf(other), nil
	case taken:
		return link.Link{}, fmt.Errorf("create %s: %w", l.Key, link.ErrExists)
	}
	if key, ok := m.ids[owned{l.Workspace, l.ID}]; ok { // as a store may say
		return link.Link{}, fmt.Errorf("create %s: id belongs to %s: %w", l.Key, key, link.ErrConflict)
	}
	if err := m.redeem(l); err != nil {
		return link.Link{}, fmt.Errorf("create %s: %w", l.Key, err)
	}
	l.Version, l.Spent = 1, 0
	m.put(l)
	m.ids[owned{l.Workspace, l.ID}] = l.Key
	m.keys = append(m.keys, l.Key)
	if l.CodeKind == link.Chosen {
		m.log(l, link.WasCreated, l.CreatedBy)
	}
	return copyOf(m.links[l.Key]), nil
}

// Replace implements link.Store.
func (m *Memory) Replace(ctx context.Context, l link.Link, e link.Edit) (link.Link, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx, "replace"); err != nil {
		return link.Link{}, err
	}
	if err := l.Validate(); err != nil {
		return link.Link{}, fmt.Errorf("replace: %w", err)
	}
	old, ok := m.links[l.Key]
	switch {
	case !ok:
		return link.Link{}, fmt.Errorf("replace %s: %w", l.Key, link.ErrNotFound)
	case old.Status == link.Deleted:
		return link.Link{}, fmt.Errorf("replace %s: deleted: %w", l.Key, link.ErrConflict)
	case old.Version != l.Version:
		return link.Link{}, fmt.Errorf("replace %s: stored version is %d: %w", l.Key, old.Version, link.ErrConflict)
	}
	l.ID, l.CodeKind, l.Created, l.Spent = old.ID, old.CodeKind, old.Created, old.Spent
	if l.Workspace != old.Workspace {
		if key, ok := m.ids[owned{l.Workspace, l.ID}]; ok {
			return link.Link{}, fmt.Errorf("replace %s: id belongs to %s there: %w", l.Key, key, link.ErrConflict)
		}
		delete(m.ids, owned{old.Workspace, old.ID})
		m.ids[owned{l.Workspace, l.ID}] = l.Key
	}
	l.Version++
	m.put(l)
	kind := link.WasUpdated
	if l.Status == link.Deleted {
		kind, e.Fields = link.WasDeleted, nil
		for i := range m.changes {
			if m.changes[i].Key == l.Key {
				m.changes[i].Fields = nil
			}
		}
	}
	m.log(l, kind, e.Principal, e.Fields...)
	return copyOf(m.links[l.Key]), nil
}

// put stores a copy, of a deleted link only what its tombstone keeps.
func (m *Memory) put(l link.Link) {
	m.links[l.Key] = copyOf(l.Normal())
}

func (m *Memory) log(l link.Link, kind link.EventKind, principal string, was ...link.Was) {
	m.append(link.Event{
		Change: link.Change{Key: l.Key, Version: l.Version},
		Kind:   kind, ID: l.ID, Workspace: l.Workspace, Principal: principal, Fields: was,
	})
}

func (m *Memory) append(e link.Event) {
	e.Sequence, e.At = link.Sequence(len(m.changes)+1), time.Now().UTC().Truncate(time.Millisecond)
	m.changes = append(m.changes, e)
}

// Append implements link.EventLog.
func (m *Memory) Append(ctx context.Context, e link.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx, "append"); err != nil {
		return err
	}
	if err := e.Appendable(); err != nil {
		return err
	}
	e.Keys = slices.Clone(e.Keys)
	m.append(e)
	return nil
}

// Spend implements link.Spender.
func (m *Memory) Spend(ctx context.Context, k link.Key, n uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx, "spend"); err != nil {
		return 0, err
	}
	l, ok := m.links[k]
	if !ok || l.Status == link.Deleted {
		return 0, fmt.Errorf("spend %s: %w", k, link.ErrNotFound)
	}
	if l.MaxClicks == 0 {
		return n, nil
	}
	granted := min(n, l.MaxClicks-min(l.Spent, l.MaxClicks))
	l.Spent += granted
	m.links[k] = l
	if granted > 0 && l.Spent >= l.MaxClicks {
		m.log(l, link.WasExhausted, "")
	}
	return granted, nil
}

// Close implements link.Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// copyOf lets nobody share the tags of a stored link; no tags are nil.
func copyOf(l link.Link) link.Link {
	if len(l.Tags) == 0 {
		l.Tags = nil
	}
	l.Tags = slices.Clone(l.Tags)
	return l
}

// byAge orders links by id, then by key for ids used in two workspaces.
func byAge(a, b link.Link) int {
	return cmp.Or(slices.Compare(a.ID[:], b.ID[:]), compareKeys(a.Key, b.Key))
}

func compareKeys(a, b link.Key) int {
	return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Code, b.Code))
}
