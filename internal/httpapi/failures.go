package httpapi

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/repeatlog"
)

// failure is what failures that follow each other have in common. There are no more of
// them than operations times rows of the table of mappings.
type failure struct{ route, detail string }

// failures keeps a store that is away, or a disk that is full, from being logged at
// each request that it fails.
type failures struct {
	some atomic.Bool // there is one that may be over

	mu      sync.Mutex
	lasting map[failure]*repeatlog.Condition // guarded by mu
}

// met reports whether a failure is to be logged.
func (f *failures) met(now time.Time, what failure) (slog.Attr, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.lasting[what]
	if c == nil {
		if f.lasting == nil {
			f.lasting = map[failure]*repeatlog.Condition{}
		}
		c = new(repeatlog.Condition)
		f.lasting[what] = c
		f.some.Store(true)
	}
	return c.Met(now)
}

// over logs which failures are over. It is called with every request, and costs nothing
// while there are none.
func (f *failures) over(ctx context.Context, log *slog.Logger, now time.Time) {
	if !f.some.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for what, c := range f.lasting {
		if sum, due := c.Over(now); due {
			log.InfoContext(ctx, "requests no longer fail", slog.String("route", what.route), slog.String("detail", what.detail), sum)
			delete(f.lasting, what)
		}
	}
	f.some.Store(len(f.lasting) > 0)
}
