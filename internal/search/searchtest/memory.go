package searchtest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"curt/internal/link"
	"curt/internal/search"
)

// Memory is the model of an index: it looks at every document. It is the double of
// tests above.
type Memory struct {
	// Reads bounds the documents that one Find looks at, for tests of short pages;
	// 0 = all.
	Reads int
	// Fail, if set, is asked before every call; its error is the answer.
	Fail func() error

	mu       sync.RWMutex
	docs     map[link.ID]search.Document // guarded by mu
	order    []link.ID                   // guarded by mu: ids of docs, sorted
	position search.Position             // guarded by mu
	closed   bool                        // guarded by mu
}

var _ search.Index = (*Memory)(nil)

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{docs: map[link.ID]search.Document{}} }

func (m *Memory) ready(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case m.closed:
		return fmt.Errorf("closed: %w", search.ErrUnavailable)
	case m.Fail != nil:
		return m.Fail()
	}
	return nil
}

// Position implements search.Index.
func (m *Memory) Position(ctx context.Context) (search.Position, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.position, m.ready(ctx)
}

// Apply implements search.Index.
func (m *Memory) Apply(ctx context.Context, b search.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return err
	}
	seen := map[link.ID]bool{}
	for _, d := range b.Docs {
		if seen[d.ID] {
			return fmt.Errorf("%s comes twice", d.ID)
		}
		seen[d.ID] = true
		for _, t := range d.Terms {
			if len(t) > search.MaxTerm {
				return fmt.Errorf("a term of %d bytes", len(t))
			}
		}
	}
	for _, id := range b.Gone {
		delete(m.docs, id)
	}
	for _, d := range b.Docs {
		d.Terms = slices.Clone(d.Terms)
		m.docs[d.ID] = d
	}
	m.order = slices.SortedFunc(maps.Keys(m.docs), compareIDs)
	m.position = b.Position
	return nil
}

// Find implements search.Index.
func (m *Memory) Find(ctx context.Context, q search.Query, p search.Page) (hits search.Hits, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx); err != nil {
		return hits, err
	}
	read := 0
	for _, id := range m.page(p) {
		matches := Matches(q, m.docs[id].Terms)
		if read++; m.Reads > 0 && read > m.Reads || matches && len(hits.Found) == p.Limit {
			hits.More, hits.Next = true, id
			return hits, nil
		}
		if matches {
			hits.Found = append(hits.Found, search.Hit{ID: id, Key: m.docs[id].Key})
		}
	}
	return hits, nil
}

// page returns the ids from the page's beginning on, in its order.
func (m *Memory) page(p search.Page) []link.ID {
	at, exact := slices.BinarySearchFunc(m.order, p.From, compareIDs)
	if p.Oldest {
		return m.order[at:]
	}
	if exact {
		at++
	}
	if p.From.IsZero() {
		at = len(m.order)
	}
	list := slices.Clone(m.order[:at])
	slices.Reverse(list)
	return list
}

func compareIDs(a, b link.ID) int { return bytes.Compare(a[:], b[:]) }

// Matches reports whether a document with these terms is among what a query chooses.
func Matches(q search.Query, terms []string) bool {
	in := func(r search.Range) bool { return slices.ContainsFunc(terms, r.Holds) }
	return !slices.ContainsFunc(q.None, in) && !slices.ContainsFunc(q.All, func(r search.Range) bool { return !in(r) })
}

// Tidy implements search.Index: there is nothing to do.
func (m *Memory) Tidy(ctx context.Context, _ bool) (bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return false, m.ready(ctx)
}

// Reset implements search.Index.
func (m *Memory) Reset(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.docs, m.order, m.position = map[link.ID]search.Document{}, nil, search.Position{}
	return m.ready(ctx)
}

// Close implements search.Index.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
