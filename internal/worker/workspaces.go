package worker

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
	"curt/internal/link"
)

// maxKnown bounds the links whose workspace is remembered, some 20 MB. All are forgotten when
// there are more, and the busiest learnt again at once.
const maxKnown = 1 << 17

// workspaces knows for whose statistics the clicks of a link count, and how long they are kept.
type workspaces struct {
	ask  func(ctx context.Context, keys []link.Key) ([]string, error) // nil = nobody's
	days func(workspace string) uint16                                // nil = as the store does

	mu    sync.Mutex
	known map[link.Key]string // guarded by mu
}

func newWorkspaces(ask func(context.Context, []link.Key) ([]string, error), days func(string) uint16) *workspaces {
	return &workspaces{ask: ask, days: days, known: map[link.Key]string{}}
}

// fill completes rows. After an error some are complete.
func (w *workspaces) fill(ctx context.Context, rows []clickdb.Row) error {
	if err := w.name(ctx, rows); err != nil || w.days == nil {
		return err
	}
	for i := range rows {
		rows[i].RetentionDays = w.days(rows[i].Workspace)
	}
	return nil
}

// name says whose the rows are.
func (w *workspaces) name(ctx context.Context, rows []clickdb.Row) error {
	if w.ask == nil {
		return nil
	}
	unknown := w.look(rows)
	if len(unknown) == 0 {
		return nil
	}
	names, err := w.ask(ctx, unknown)
	if err != nil {
		return fmt.Errorf("workspaces of %d links: %w", len(unknown), err)
	}
	found := make(map[link.Key]string, len(unknown))
	for i, k := range unknown {
		found[k] = names[i]
	}
	for i := range rows {
		if name, ok := found[rows[i].Key]; ok && rows[i].Outcome != clicks.Orphan {
			rows[i].Workspace = name
		}
	}
	w.learn(found)
	return nil
}

// look completes the rows of links that are known, and returns the others.
func (w *workspaces) look(rows []clickdb.Row) (unknown []link.Key) {
	asked := map[link.Key]struct{}{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range rows {
		r := &rows[i]
		if r.Outcome == clicks.Orphan {
			continue
		}
		name, ok := w.known[r.Key]
		if r.Workspace = name; ok {
			continue
		}
		if _, ok := asked[r.Key]; !ok {
			asked[r.Key] = struct{}{}
			unknown = append(unknown, r.Key)
		}
	}
	return unknown
}

func (w *workspaces) learn(found map[link.Key]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.known)+len(found) > maxKnown {
		w.known = make(map[link.Key]string, len(found))
	}
	maps.Copy(w.known, found)
}

// forget has the workspaces of links asked for again; none = of all.
func (w *workspaces) forget(keys []link.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(keys) == 0 {
		w.known = map[link.Key]string{}
	}
	for _, k := range keys {
		delete(w.known, k)
	}
}
