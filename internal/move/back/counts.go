package back

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks/rollup"
	"curt/internal/move"
)

// importer brings statistics of ClickHouse into a folder: what exporter does, the other way.
type importer struct{ *back }

var errClicksOut = errors.New("clicks of servers are not in ClickHouse yet; let a worker insert them, or see curt clicks forget")

// importCounts fills clicks.db from a server of ClickHouse that has all clicks, a day in each transaction:
// a killed run goes on with the next one. Then all days are compared.
func (m *importer) importCounts(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy statistics: %w", err)
		}
	}()
	store, err := m.complete(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	exports := reconcile.ExportsOf(store.Tables)
	days, err := exports.Days(ctx)
	if err != nil {
		return err
	}
	path := filepath.Join(m.half, "clicks.db")
	c, err := counts.Open(ctx, counts.Config{Path: path})
	if err != nil {
		return err
	}
	state, err := c.Load(ctx)
	if err == nil && state.Generation > uint64(len(days)) {
		err = fmt.Errorf("%d days were copied of %d: %w", state.Generation, len(days), coldcopy.ErrDiffers)
	}
	for err == nil && state.Generation < uint64(len(days)) {
		at := days[state.Generation]
		state.Generation++
		err = m.importDay(ctx, exports, c, state, at)
		m.Progress("days of statistics", int64(state.Generation), int64(len(days)))
	}
	if err = errors.Join(err, c.Close()); err != nil {
		return err
	}
	return m.compareDays(ctx, reconcile.ImportsOf(store.Tables), path)
}

// complete opens the first server that has all clicks that there are.
func (m *importer) complete(ctx context.Context) (*clickhouse.Store, error) {
	var errs []error
	for _, with := range m.Analytics.Stores {
		with.Senders = m.Analytics.Senders
		store, err := clickhouse.OpenAsIs(ctx, with)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err = m.hasAll(ctx, store); err == nil {
			return store, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", store.Address(), err), store.Close())
	}
	return nil, errors.Join(errs...)
}

// hasAll returns an error unless all servers that have taken clicks have ended, and their clicks are there.
func (m *importer) hasAll(ctx context.Context, store *clickhouse.Store) error {
	senders, err := m.Analytics.Senders(ctx)
	if err != nil {
		return err
	}
	state, err := store.Replica(ctx)
	if err == nil {
		err = store.Lacking(state)
	}
	if err != nil {
		return err
	}
	p, err := store.Progress(ctx, time.Now())
	if err != nil {
		return err
	}
	var names []string
	known := map[uint64]bool{}
	for _, s := range p.Senders {
		known[s.Instance] = true
		if !s.Ended && s.Forgotten.IsZero() {
			names = append(names, s.Host+" "+s.Folder)
		}
	}
	gone := slices.DeleteFunc(slices.Clone(p.Gone), func(id uint64) bool { return known[id] })
	if len(names) > 0 || len(p.Senders) < len(senders) || p.Instances > len(gone) {
		return fmt.Errorf("%w: %s", errClicksOut, strings.Join(names, ", "))
	}
	return nil
}

// linksAtOnce are written by one statement or a few.
const linksAtOnce = 256

// importDay adds a day to clicks.db.
func (m *importer) importDay(ctx context.Context, exports reconcile.Exports, c *counts.Rollups, state rollup.State, at time.Time) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	links := func(yield func([]rollup.LinkDelta) bool) {
		var chunk []rollup.LinkDelta
		err := exports.Day(within, at, func(one *rollup.LinkDelta) error {
			if chunk = append(chunk, *one); len(chunk) < linksAtOnce {
				return nil
			}
			if !yield(chunk) {
				return errStopped
			}
			chunk = chunk[:0]
			return nil
		})
		if errors.Is(err, errStopped) {
			return
		}
		if err != nil { // of a day that was read in part nothing is kept
			cancel(err)
			chunk = nil
		}
		yield(chunk)
	}
	return c.Apply(within, rollup.Batch{State: state, Links: links})
}

// errStopped ends a reading that nobody wants any more.
var errStopped = errors.New("stopped")

// compareDays compares the sums of all days.
func (m *importer) compareDays(ctx context.Context, imports reconcile.Imports, path string) error {
	there, err := imports.SumsBefore(ctx, time.Unix(1<<32-1, 0))
	if err != nil {
		return err
	}
	here, err := move.DaySums(ctx, path)
	for at, sum := range there {
		if err == nil && here[at] != sum {
			err = fmt.Errorf("statistics of %s: %+v in the folder and %+v in ClickHouse: %w", at.Format(time.DateOnly), here[at], sum, coldcopy.ErrDiffers)
		}
	}
	if err == nil && len(here) != len(there) {
		err = fmt.Errorf("statistics of %d days in the folder and %d in ClickHouse: %w", len(here), len(there), coldcopy.ErrDiffers)
	}
	return err
}
