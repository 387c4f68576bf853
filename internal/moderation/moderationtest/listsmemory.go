package moderationtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"curt/internal/moderation"
)

// Memory keeps the lines of lists too.
var _ moderation.Lists = (*Memory)(nil)

// Change implements moderation.Lists.
func (m *Memory) Change(ctx context.Context, entries ...moderation.Entry) ([]moderation.Entry, error) {
	if err := moderation.Appendable(entries); err != nil {
		return nil, err
	}
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	lines := m.lines()
	var changed []moderation.Entry
	for _, e := range entries {
		_, listed := lines[e.Entity]
		switch {
		case e.Action == moderation.ActionList && !listed:
			lines[e.Entity] = 0
		case e.Action == moderation.ActionUnlist && listed:
			delete(lines, e.Entity)
		case e.Action == moderation.ActionList, e.Action == moderation.ActionUnlist:
			continue
		default:
			return nil, fmt.Errorf("%w: action %s", moderation.ErrInvalid, e.Action)
		}
		changed = append(changed, e)
	}
	lookAlikes := 0
	for e := range lines {
		if e.Kind == moderation.KindLookAlike {
			lookAlikes++
		}
	}
	if len(lines) > moderation.MaxListLines || lookAlikes > moderation.MaxLookAlikes {
		return nil, moderation.ErrListsFull
	}
	return m.append(changed), nil
}

// lines returns what the entries come to; mu is held.
func (m *Memory) lines() map[moderation.Entity]uint64 {
	lines := map[moderation.Entity]uint64{}
	for i := range m.entries {
		switch e := &m.entries[i]; e.Action {
		case moderation.ActionList:
			lines[e.Entity] = e.Sequence
		case moderation.ActionUnlist:
			delete(lines, e.Entity)
		default:
		}
	}
	return lines
}

// Lines implements moderation.Lists.
func (m *Memory) Lines(ctx context.Context, kind moderation.Kind, after string, n int) (found []moderation.Entry, err error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	lines := m.lines()
	for _, e := range slices.SortedFunc(maps.Keys(lines), func(a, b moderation.Entity) int { return strings.Compare(a.Name, b.Name) }) {
		if e.Kind == kind && e.Name > after && len(found) < n {
			found = append(found, m.entries[lines[e]-1])
		}
	}
	return found, nil
}

// Load implements moderation.Lists.
func (m *Memory) Load(ctx context.Context) (lines map[moderation.Entity]uint64, complete uint64, err error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	return m.lines(), uint64(len(m.entries)), nil
}
