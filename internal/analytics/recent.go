package analytics

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/clicks"
)

const (
	// patience is how long a fresh answer may take where an earlier one is known.
	patience = time.Second
	// mostRecent bounds the bytes of answers that are remembered.
	mostRecent = 16 << 20
	// recentFor is how long an answer may be shown.
	recentFor = 24 * time.Hour
)

// Recent is a Reader that remembers its answers, and gives the last one where the counts are
// unavailable or slow. It does not know who may read what: callers decide that before.
// All methods may be called by many goroutines at once.
type Recent struct {
	Reader

	stale atomic.Uint64

	mu    sync.Mutex
	known map[string]*list.Element // guarded by mu
	order *list.List               // guarded by mu: of answers, the least recently used last
	bytes int                      // guarded by mu
}

// answer is one that was given.
type answer struct {
	question string
	value    any
	bytes    int
	at       time.Time
}

// NewRecent returns a Recent without answers.
func NewRecent(r Reader) *Recent {
	return &Recent{Reader: r, known: map[string]*list.Element{}, order: list.New()}
}

// Stale returns how many answers were earlier ones.
func (r *Recent) Stale() uint64 { return r.stale.Load() }

// Age collects of when the answers of a request are.
type Age struct {
	mu sync.Mutex
	at time.Time // guarded by mu
}

type ageKey struct{}

// WithAge returns a context whose answers a [Recent] notes in an Age.
func WithAge(ctx context.Context) (context.Context, *Age) {
	a := &Age{}
	return context.WithValue(ctx, ageKey{}, a), a
}

// AsOf returns when the oldest of the answers was read, if it was not read for this request; zero =
// all are fresh.
func (a *Age) AsOf() time.Time { a.mu.Lock(); defer a.mu.Unlock(); return a.at }

func (a *Age) note(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at.IsZero() || at.Before(a.at) {
		a.at = at
	}
}

// Totals implements Reader.
func (r *Recent) Totals(ctx context.Context, s Scope, now time.Time) (Totals, error) {
	return recent(ctx, r, "totals"+s.recently(now), now, func(Totals) int { return 0 },
		func(ctx context.Context) (Totals, error) { return r.Reader.Totals(ctx, s, now) })
}

// Series implements Reader.
func (r *Recent) Series(ctx context.Context, s Scope, step Step, now time.Time) ([]Point, error) {
	return recent(ctx, r, fmt.Sprint("series", step, s.recently(now)), now, func(p []Point) int { return 64 * len(p) },
		func(ctx context.Context) ([]Point, error) { return r.Reader.Series(ctx, s, step, now) })
}

// Top implements Reader.
func (r *Recent) Top(ctx context.Context, s Scope, n int, now time.Time, dimensions ...clicks.Dimension) ([][]Row, error) {
	return recent(ctx, r, fmt.Sprintf("top %d %v%s", n, dimensions, s.recently(now)), now, func(top [][]Row) (bytes int) {
		for _, rows := range top {
			for _, row := range rows {
				bytes += 64 + len(row.Value)
			}
		}
		return bytes
	}, func(ctx context.Context) ([][]Row, error) { return r.Reader.Top(ctx, s, n, now, dimensions...) })
}

// recently names a scope. One that goes up to the present is the same a while later.
func (s Scope) recently(now time.Time) string {
	zone := ""
	if s.Zone != nil {
		zone = s.Zone.String()
	}
	of := fmt.Sprintf(" %q %q %s", s.Key.Domain, s.Key.Code, zone)
	if s.To.IsZero() || s.To.After(now) {
		if s.From.IsZero() {
			return of + " all"
		}
		to := s.To
		if to.IsZero() {
			to = now.Truncate(15 * time.Minute)
		}
		return of + " last " + to.Sub(s.From).String()
	}
	return fmt.Sprint(of, s.From.Unix(), " ", s.To.Unix())
}

// recent reads an answer, or returns the one that is known.
func recent[T any](ctx context.Context, r *Recent, question string, now time.Time, size func(T) int, read func(context.Context) (T, error)) (T, error) {
	was, at, known := r.find(question, now)
	earlier, is := was.(T)
	if !known || !is {
		fresh, err := read(ctx)
		if err == nil {
			r.keep(answer{question, fresh, 256 + len(question) + size(fresh), now})
		}
		return fresh, err
	}
	age, _ := ctx.Value(ageKey{}).(*Age)
	var fresh T
	err := ErrUnavailable
	if age == nil || age.AsOf().IsZero() { // else the request has waited already
		if fresh, err = inTime(ctx, read); err == nil {
			r.keep(answer{question, fresh, 256 + len(question) + size(fresh), now})
			return fresh, nil
		}
	}
	if ctx.Err() != nil || !errors.Is(err, ErrUnavailable) {
		return *new(T), err
	}
	r.stale.Add(1)
	if age != nil {
		age.note(at)
	}
	return earlier, nil
}

// inTime returns what is read within patience. A driver may notice only later that nobody waits for it
// any more: its goroutine ends with its own time limit.
func inTime[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w: no response within %s", ErrUnavailable, patience))
	defer cancel()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), context.Cause(ctx)
	}
}

func (r *Recent) find(question string, now time.Time) (value any, at time.Time, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.known[question]
	if e == nil {
		return nil, at, false
	}
	a, _ := e.Value.(answer)
	r.order.MoveToFront(e)
	return a.value, a.at, now.Sub(a.at) < recentFor
}

func (r *Recent) keep(a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.known[a.question]; e != nil {
		r.drop(e)
	}
	r.known[a.question] = r.order.PushFront(a)
	for r.bytes += a.bytes; r.bytes > mostRecent; {
		r.drop(r.order.Back())
	}
}

// drop forgets an answer. The caller holds mu.
func (r *Recent) drop(e *list.Element) {
	a, _ := r.order.Remove(e).(answer)
	delete(r.known, a.question)
	r.bytes -= a.bytes
}

var _ Reader = (*Recent)(nil)
