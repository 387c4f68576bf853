package move

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"curt/internal/backend/postgres/movein"
	"curt/internal/backend/sqlite/moveout"
	"curt/internal/background"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/fold"
	"curt/internal/clicks/rollup"
	"curt/internal/datafolder"
	"curt/internal/handover"
)

// lookEvery is how often a move looks whether the folder's server has ended.
const lookEvery = 200 * time.Millisecond

// aside is the folder below the data folder that takes what was moved.
const aside = "moved-files"

// finish does what follows the switch: it lets servers begin, waits for the folder's server to end,
// counts the clicks that it captured since, and puts the files aside.
func (m *move) finish(ctx context.Context, mark handover.Mark) error {
	if err := m.resume(ctx, mark); err != nil {
		return err
	}
	m.result.Links, m.result.Digest = mark.Links, mark.Digest
	if err := m.alone(ctx, mark); err != nil {
		return err
	}
	if m.state.Counted {
		if err := rest(ctx, m); err != nil {
			return fmt.Errorf("count the last clicks: %w", err)
		}
	}
	if err := putAside(m.Data, &m.state); err != nil {
		return fmt.Errorf("put the moved files aside: %w", err)
	}
	mark.Ended = true
	return handover.WriteMark(m.Data, mark)
}

// resume lets servers begin, unless this run has done so.
func (m *move) resume(ctx context.Context, mark handover.Mark) (err error) {
	if m.source != nil {
		err = m.source.Close()
		m.source = nil
		return err
	}
	if m.state, err = m.target.Resume(ctx, mark.Of); err != nil {
		return err
	}
	if m.tables != nil {
		if err := m.tables.resume(ctx, mark.Of); err != nil {
			return err
		}
	} else if m.state.Switched {
		return nil
	}
	m.state.Switched = true
	return m.links.Save(ctx, &m.state)
}

// alone waits until the folder's server has ended, and keeps others from starting.
func (m *move) alone(ctx context.Context, mark handover.Mark) error {
	if m.lock != nil {
		return nil
	}
	told := false
	for range background.Every(ctx, lookEvery) {
		lock, ok, err := datafolder.TryLock(m.Data)
		if err != nil {
			return err
		}
		if ok {
			m.lock = lock
			return nil
		}
		if !told {
			told = true
			m.Note("moved %d links to %s: servers with CURT_LINKS set to it serve now", mark.Links, m.Shown)
			m.Note("direct traffic to them, then end the folder's server: waiting for that, to count its last clicks")
		}
	}
	return ErrServerRuns
}

// rest counts the clicks that were not copied.
func rest(ctx context.Context, m *move) error {
	switch {
	case (m.state.Since > 0) != (m.Analytics != nil):
		return errElsewhere
	case m.Analytics != nil:
		return (&exporter{m}).shipRest(ctx)
	}
	return m.countRest(ctx)
}

// countRest counts what the click log has behind the copy of clicks.db.
func (m *move) countRest(ctx context.Context) (err error) {
	before, known := expected(ctx, m.Data, m.state.Summed)
	if m.state.Begun {
		known = false // some of it was counted by an earlier run
	}
	m.state.Begun = true
	if err := m.target.Save(ctx, &m.state); err != nil {
		return err
	}
	store, err := m.rollups(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	log, err := clicklog.Open(clicklog.Config{Dir: filepath.Join(m.Data, "clicks"), Logger: m.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	sums := &summing{Store: store}
	if err := m.fold(ctx, log, sums); err != nil {
		return err
	}
	m.result.Clicks = sums.requests
	if known && before != sums.requests {
		m.Note("the folder's server counted %d requests since the copy, and its click log has %d: see CURT_CLICK_LOG_MAX and CURT_RAW_RETENTION", before, sums.requests)
	}
	return nil
}

// expected returns how many requests the folder's server has counted since the copy; known is false
// when it was killed before it counted its last ones.
func expected(ctx context.Context, data string, summed int64) (requests int64, known bool) {
	c, err := moveout.OpenCounts(ctx, filepath.Join(data, "clicks.db"))
	if err != nil {
		return 0, false
	}
	defer c.Close() //nolint:errcheck // only read
	r, err := clicklog.ReadDir(filepath.Join(data, "clicks"), c.State.Position)
	if err != nil {
		return 0, false
	}
	defer r.Close()
	if _, err := r.Next(); err == nil {
		return 0, false
	}
	all, err := c.Requests()
	return all - summed, err == nil
}

// fold counts the whole log.
func (m *move) fold(ctx context.Context, log *clicklog.Log, store rollup.Store) error {
	f := fold.New(fold.Config{Log: log, Store: store, Logger: m.Log, Groups: m.links.Workspaces, Every: 100 * time.Millisecond})
	running, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- f.Run(running) }()
	for range background.Every(running, 10*time.Millisecond) {
		if s := f.Stats(); s.Written.Compare(log.End()) >= 0 {
			break
		}
		select {
		case err := <-ended:
			return errors.Join(err, ctx.Err(), errNotCounted)
		default:
		}
	}
	end()
	if err := <-ended; err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return nil
}

var errNotCounted = errors.New("the click log was not counted to its end")

// summing is a store that adds up what is counted.
type summing struct {
	rollup.Store
	requests int64
}

// Apply implements rollup.Store.
func (s *summing) Apply(ctx context.Context, b rollup.Batch) error {
	var sum int64
	links := b.Links
	b.Links = func(yield func([]rollup.LinkDelta) bool) {
		sum = 0 // a batch may be walked again
		for chunk := range links {
			for i := range chunk {
				c := &chunk[i].Total.Counts
				sum += int64(c.Clicks + c.Previews + c.Fallbacks + c.Refused)
			}
			if !yield(chunk) {
				return
			}
		}
	}
	err := s.Store.Apply(ctx, b)
	if err == nil {
		s.requests += sum
	}
	return err
}

// putAside moves the files that no server uses any more into a folder of their own, and names the
// folder's server for the database, where its click log goes on.
func putAside(data string, state *movein.State) error {
	if state.Counted {
		if err := datafolder.Rename(data, state.Name); err != nil {
			return err
		}
	}
	to := filepath.Join(data, aside)
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	patterns := []string{"curt.db*", "search.db*"}
	if state.Counted {
		patterns = append(patterns, "clicks.db*")
	}
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join(data, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := os.Rename(name, filepath.Join(to, filepath.Base(name))); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{countsCopy, countsCopy + ".new"} {
		if err := os.Remove(filepath.Join(data, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
