// Package moderationtest proves journals, and holds doubles for the tests of others.
package moderationtest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Memory is the moderation.Journal by which others are judged, and keeps progress too.
type Memory struct {
	mu       sync.Mutex
	entries  []moderation.Entry  // guarded by mu, as all below
	progress moderation.Progress // guarded by mu
	closed   bool
	failing  error
}

// NewMemory returns an empty journal.
func NewMemory() *Memory { return &Memory{} }

// Close ends the journal.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Fail lets every call fail with err from now on; nil = no more.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = err
}

// enter takes the lock, unless nobody may be answered.
func (m *Memory) enter(ctx context.Context) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("journal in memory: %w", context.Cause(ctx))
	}
	m.mu.Lock()
	switch {
	case m.closed:
		err = fmt.Errorf("journal in memory: closed: %w", link.ErrUnavailable)
	case m.failing != nil:
		err = fmt.Errorf("journal in memory: %w", m.failing)
	default:
		return m.mu.Unlock, nil
	}
	m.mu.Unlock()
	return nil, err
}

// Append implements moderation.Journal.
func (m *Memory) Append(ctx context.Context, entries ...moderation.Entry) ([]moderation.Entry, error) {
	if len(entries) > moderation.MaxAppend {
		return nil, fmt.Errorf("%w: %d entries at once", moderation.ErrInvalid, len(entries))
	}
	for _, e := range entries {
		if err := e.Validate(); err != nil {
			return nil, err
		}
	}
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return m.append(entries), nil
}

func (m *Memory) append(entries []moderation.Entry) []moderation.Entry {
	var last moderation.Entry
	if n := len(m.entries); n > 0 {
		last = m.entries[n-1]
	}
	first := len(m.entries)
	for _, e := range entries {
		e.Sequence = last.Sequence + 1
		if e.At.Before(last.At) {
			e.At = last.At
		}
		last = e.Seal(last.Hash)
		m.entries = append(m.entries, last)
	}
	return slices.Clone(m.entries[first:])
}

// Read implements moderation.Journal.
func (m *Memory) Read(ctx context.Context, after uint64, n int) ([]moderation.Entry, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	rest := m.entries[min(after, uint64(len(m.entries))):]
	return slices.Clone(rest[:min(n, len(rest))]), nil
}

// newest returns up to n entries before a sequence that f wants, the newest first.
func (m *Memory) newest(before uint64, n int, f func(*moderation.Entry) bool) (found []moderation.Entry) {
	for i := len(m.entries) - 1; i >= 0 && len(found) < n; i-- {
		if e := &m.entries[i]; (before == 0 || e.Sequence < before) && f(e) {
			found = append(found, *e)
		}
	}
	return found
}

// Find implements moderation.Journal.
func (m *Memory) Find(ctx context.Context, f moderation.Filter, before uint64, n int) ([]moderation.Entry, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return m.newest(before, n, func(e *moderation.Entry) bool {
		return (f.Entity == moderation.Entity{} || e.Entity == f.Entity) && (f.Actor == "" || e.Actor == f.Actor) && !e.At.Before(f.Since)
	}), nil
}

// EffectiveDecision implements moderation.Journal.
func (m *Memory) EffectiveDecision(ctx context.Context, id link.ID) (moderation.Entry, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return moderation.Entry{}, err
	}
	defer leave()
	decides := func(e *moderation.Entry) bool {
		return e.Link == id && (e.Action == moderation.ActionDecide || e.Action == moderation.ActionAnswer)
	}
	found := m.newest(0, 1, decides)
	if len(found) == 0 {
		return moderation.Entry{}, moderation.ErrNotFound
	}
	var person moderation.Entry
	for _, e := range m.newest(0, 1, func(e *moderation.Entry) bool { return decides(e) && e.Actor != moderation.ActorPolicy }) {
		person = e
	}
	return moderation.Prevailing(found[0], person), nil
}

// Bans implements moderation.Journal.
func (m *Memory) Bans(ctx context.Context) ([]moderation.Entry, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return moderation.ActiveBans(m.entries), nil
}

// Verdicts implements moderation.Journal.
func (m *Memory) Verdicts(ctx context.Context) (verdicts []moderation.Entry, err error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, e := range m.entries {
		if e.Entity.Kind == moderation.KindDestination && (e.Action == moderation.ActionDecide || e.Action == moderation.ActionAnswer) {
			verdicts = append(verdicts, e)
		}
	}
	return verdicts, nil
}

// Erase implements moderation.Journal.
func (m *Memory) Erase(ctx context.Context, sequence uint64, by moderation.Entry) (moderation.Entry, error) {
	if err := by.Validate(); err != nil {
		return moderation.Entry{}, err
	}
	leave, err := m.enter(ctx)
	if err != nil {
		return moderation.Entry{}, err
	}
	defer leave()
	if sequence == 0 || sequence > uint64(len(m.entries)) {
		return moderation.Entry{}, moderation.ErrNotFound
	}
	e := &m.entries[sequence-1]
	e.Reason, e.Evidence = e.Reason.Erase(), e.Evidence.Erase()
	return m.append([]moderation.Entry{by})[0], nil
}

// Spoil changes an entry behind the journal's back.
func (m *Memory) Spoil(sequence uint64, f func(*moderation.Entry)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.entries[sequence-1])
}

// Cut takes all entries behind one away, behind the journal's back.
func (m *Memory) Cut(last uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = m.entries[:last]
}

// Progress implements moderation.ProgressStore.
func (m *Memory) Progress(ctx context.Context) (moderation.Progress, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return moderation.Progress{}, err
	}
	defer leave()
	return m.progress.Clone(), nil
}

// StoreProgress implements moderation.ProgressStore.
func (m *Memory) StoreProgress(ctx context.Context, p moderation.Progress) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	m.progress = p.Clone()
	return nil
}
