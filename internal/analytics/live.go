package analytics

import (
	"context"
	"errors"
	"sync"
	"time"

	"curt/internal/link"
)

// The errors of Live, tested with errors.Is.
var (
	// ErrWatched: as many watch as may, in all or of this caller.
	ErrWatched = errors.New("too many live streams")
	// ErrLiveEnded: Close was called; the process is about to end.
	ErrLiveEnded = errors.New("live counts have ended")
)

const (
	// liveEvery is how often counts are looked at while somebody watches: with the
	// tenth of a second that a click needs to be counted, who watches sees it within 2 s.
	liveEvery = time.Second

	// MaxWatchers and MaxWatchersEach bound who may watch at once, in all and of one
	// caller: each holds a connection, and each link one key of a question a second.
	MaxWatchers     = 1000
	MaxWatchersEach = 50
)

// Live tells watchers what the clicks of links come to. All of them together cost one
// question a second, and none while nobody watches; a redirect knows nothing of it. Its
// methods may be called by many goroutines at once.
type Live struct {
	counts interface {
		Clicks(ctx context.Context, keys []link.Key) ([]uint64, error)
	}
	began chan struct{} // somebody watches again; Run listens
	ended chan struct{} // closed by Close

	mu      sync.Mutex
	closed  bool                             // guarded by mu
	watched map[link.Key]map[*Watch]struct{} // guarded by mu
	by      map[string]int                   // guarded by mu; how many each caller has
	all     int                              // guarded by mu
}

// Watch is one who watches. Close it when nobody does any more.
type Watch struct {
	live   *Live
	key    link.Key
	caller string
	counts chan uint64 // the newest count that nobody took
}

// NewLive returns a Live that begins with Run, over a Reader's counts.
func NewLive(r Reader) *Live {
	return &Live{
		counts: r, began: make(chan struct{}, 1), ended: make(chan struct{}),
		watched: map[link.Key]map[*Watch]struct{}{}, by: map[string]int{},
	}
}

// Watch begins to tell what the clicks of a link come to, on behalf of a caller. It fails
// with ErrWatched or ErrLiveEnded.
func (l *Live) Watch(k link.Key, caller string) (*Watch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, ErrLiveEnded
	case l.all >= MaxWatchers || l.by[caller] >= MaxWatchersEach:
		return nil, ErrWatched
	}
	w := &Watch{live: l, key: k, caller: caller, counts: make(chan uint64, 1)}
	if l.watched[k] == nil {
		l.watched[k] = map[*Watch]struct{}{}
	}
	l.watched[k][w] = struct{}{}
	l.by[caller]++
	l.all++
	select {
	case l.began <- struct{}{}:
	default:
	}
	return w, nil
}

// Counts has the newest count, about once a second, whether it moved or not; what nobody
// took in time is replaced.
func (w *Watch) Counts() <-chan uint64 { return w.counts }

// Ended is closed when no counts come any more.
func (w *Watch) Ended() <-chan struct{} { return w.live.ended }

// Close ends the watch. A second Close does nothing.
func (w *Watch) Close() {
	l := w.live
	l.mu.Lock()
	defer l.mu.Unlock()
	watchers := l.watched[w.key]
	if _, there := watchers[w]; !there {
		return
	}
	if delete(watchers, w); len(watchers) == 0 {
		delete(l.watched, w.key)
	}
	if l.by[w.caller]--; l.by[w.caller] == 0 {
		delete(l.by, w.caller)
	}
	l.all--
}

// Close ends every watch, for good. A second Close does nothing.
func (l *Live) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.ended)
	}
}

// Run looks at the counts until ctx ends; then it returns nil. Counts that cannot be read
// now are told a second later.
func (l *Live) Run(ctx context.Context) error {
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		keys := l.keys()
		if len(keys) == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-l.began:
			}
			continue
		}
		if counts, err := l.counts.Clicks(ctx, keys); err == nil {
			l.tell(keys, counts)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (l *Live) keys() []link.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := make([]link.Key, 0, len(l.watched))
	for k := range l.watched {
		keys = append(keys, k)
	}
	return keys
}

func (l *Live) tell(keys []link.Key, counts []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, k := range keys {
		for w := range l.watched[k] {
			select {
			case <-w.counts:
			default:
			}
			w.counts <- counts[i] // there is room: only tell sends, under mu
		}
	}
}
