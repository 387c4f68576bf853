package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/clicks"
	"curt/internal/clicks/history"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/ship"
	"curt/internal/link"
)

// ahead is by how much another replica has to be ahead before queries move to it: all are fed at
// once, and statistics should not go back and forth.
const ahead = 10 * time.Second

// Replicas are servers with the same clicks. Queries go to the one whose clicks are complete up to
// the latest time, and to the next one if it fails. One that is filling is not queried, also where it is
// the only one. All methods may be called by many goroutines at once.
type Replicas struct {
	all     []*Store
	current atomic.Int32 // that is queried
}

// NewReplicas returns the replicas of some stores, in the order of the settings.
func NewReplicas(all ...*Store) *Replicas { return &Replicas{all: all} }

// All returns the stores, in the order of the settings.
func (r *Replicas) All() []*Store { return r.all }

// Run runs all of them until ctx ends.
func (r *Replicas) Run(ctx context.Context) error {
	var running sync.WaitGroup
	errs := make([]error, len(r.all))
	for i, s := range r.all {
		running.Go(func() { errs[i] = s.Run(ctx) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// Close closes all of them.
func (r *Replicas) Close() error {
	var errs []error
	for _, s := range r.all {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Healthy returns nil while a replica can be queried. It does no I/O.
func (r *Replicas) Healthy() error {
	if len(r.all) == 1 {
		return r.all[0].Able()
	}
	var errs []error
	for _, s := range r.all {
		err := s.Able()
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return &noneError{errs}
}

// noneError says why no replica can be queried.
type noneError struct{ all []error }

func (e *noneError) Error() string { return "no replica can be queried: " + e.PublicMessage() }

// PublicMessage is what an operator may read.
func (e *noneError) PublicMessage() string {
	var b strings.Builder
	for i, err := range e.all {
		if i > 0 {
			b.WriteString("; ")
		}
		text := err.Error()
		if public, ok := errors.AsType[interface {
			error
			PublicMessage() string
		}](err); ok {
			text = public.PublicMessage()
		}
		b.WriteString(text)
	}
	return b.String()
}

// Unwrap implements errors.Is.
func (e *noneError) Unwrap() []error { return e.all }

// Stats returns the counters of all.
func (r *Replicas) Stats() (sum clickdb.Stats) {
	for _, s := range r.all {
		one := s.Stats()
		sum.Questions, sum.Failures = sum.Questions+one.Questions, sum.Failures+one.Failures
	}
	return sum
}

// LastProgress is that of the replica that is queried. What lacks clicks is not complete up to any time.
func (r *Replicas) LastProgress() watermarks.Progress {
	s := r.all[r.current.Load()]
	if able := r.able(); len(able) > 0 {
		s = able[0]
	}
	p := s.LastProgress()
	if s.LastReplica().Filling {
		p.Freshness = rollup.Freshness{}
	}
	return p
}

// EndedSenders are those all of whose clicks every replica has: one that is away or filling may have to
// wait for the others.
func (r *Replicas) EndedSenders() (ended []ship.Sender) {
	in := map[string]int{}
	for _, s := range r.all {
		for _, one := range s.LastProgress().Senders {
			if !one.Ended || s.LastReplica().Filling {
				continue
			}
			name := fmt.Sprint(one.Folder, " ", one.Instance)
			if in[name]++; in[name] == len(r.all) {
				ended = append(ended, one.Sender)
			}
		}
	}
	return ended
}

// able are the replicas that can be queried, the one to begin with first.
func (r *Replicas) able() []*Store {
	if len(r.all) == 1 { // it reports itself that it is away, or lacks clicks
		return r.all
	}
	var able []*Store
	current := r.all[r.current.Load()]
	lead := func(s *Store) time.Time {
		at := s.LastProgress().Complete
		if s == current && !at.IsZero() {
			at = at.Add(ahead)
		}
		return at
	}
	for _, s := range r.all {
		if s.Able() == nil {
			able = append(able, s)
		}
	}
	slices.SortStableFunc(able, func(a, b *Store) int {
		return cmp.Or(lead(b).Compare(lead(a)), cmp.Compare(a.Config.Position, b.Config.Position))
	})
	if len(able) > 0 && able[0] != current {
		r.current.Store(int32(slices.Index(r.all, able[0])))
	}
	return able
}

// ask calls a query of one replica after the other until one answers.
func ask[T any](ctx context.Context, r *Replicas, query func(*Store) (T, error)) (value T, err error) {
	able := r.able()
	if len(able) == 0 {
		if err := r.Healthy(); err != nil {
			return value, err
		}
		return value, fmt.Errorf("%w: no replica can be queried", analytics.ErrUnavailable)
	}
	if len(r.all) == 1 {
		if err := able[0].alone(ctx); err != nil {
			return value, err
		}
	}
	for _, s := range able {
		if value, err = query(s); !errors.Is(err, analytics.ErrUnavailable) {
			return value, err
		}
	}
	return value, err
}

// Totals implements analytics.Reader.
func (r *Replicas) Totals(ctx context.Context, scope analytics.Scope, now time.Time) (analytics.Totals, error) {
	return ask(ctx, r, func(s *Store) (analytics.Totals, error) { return s.Totals(ctx, scope, now) })
}

// Series implements analytics.Reader.
func (r *Replicas) Series(ctx context.Context, scope analytics.Scope, step analytics.Step, now time.Time) ([]analytics.Point, error) {
	return ask(ctx, r, func(s *Store) ([]analytics.Point, error) { return s.Series(ctx, scope, step, now) })
}

// Top implements analytics.Reader.
func (r *Replicas) Top(ctx context.Context, scope analytics.Scope, n int, now time.Time, dimensions ...clicks.Dimension) ([][]analytics.Row, error) {
	return ask(ctx, r, func(s *Store) ([][]analytics.Row, error) { return s.Top(ctx, scope, n, now, dimensions...) })
}

// Clicks implements analytics.Reader.
func (r *Replicas) Clicks(ctx context.Context, keys []link.Key) ([]uint64, error) {
	return ask(ctx, r, func(s *Store) ([]uint64, error) { return s.Clicks(ctx, keys) })
}

// Page implements analytics.History.
func (r *Replicas) Page(ctx context.Context, q history.Query) (history.Page, error) {
	return ask(ctx, r, func(s *Store) (history.Page, error) { return s.Page(ctx, q) })
}

// Since implements analytics.History.
func (r *Replicas) Since() time.Time {
	if able := r.able(); len(able) > 0 {
		return able[0].Since()
	}
	return time.Time{}
}

// ClickedSince is that of statistics.Reader.
func (r *Replicas) ClickedSince(ctx context.Context, minute time.Time, most int) ([]link.Key, error) {
	return ask(ctx, r, func(s *Store) ([]link.Key, error) { return s.ClickedSince(ctx, minute, most) })
}

// ClickedAfter is that of statistics.Reader.
func (r *Replicas) ClickedAfter(ctx context.Context, after link.Key, most int) ([]link.Key, error) {
	return ask(ctx, r, func(s *Store) ([]link.Key, error) { return s.ClickedAfter(ctx, after, most) })
}

var (
	_ analytics.Reader  = (*Replicas)(nil)
	_ analytics.History = (*Replicas)(nil)
)
