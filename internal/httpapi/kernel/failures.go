package kernel

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

// log logs a failure with its error, at first and then each minute, and reports whether it has.
func (f *failures) log(ctx context.Context, now time.Time, log *slog.Logger, what failure, message string, err error, attrs ...slog.Attr) bool {
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
	return c.Log(ctx, now, log, slog.LevelWarn, message, err, attrs...)
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
		if c.LogRecovery(ctx, now, log, "requests succeed again", slog.String("route", what.route), slog.String("detail", what.detail)) {
			delete(f.lasting, what)
		}
	}
	f.some.Store(len(f.lasting) > 0)
}

// Degraded logs what an answer lacks because of err: at first, and then each minute.
func (c *Call) Degraded(lacks string, err error) {
	k := c.kernel
	k.failures.log(c.R.Context(), c.Now, k.cfg.Log, failure{detail: lacks}, lacks, err)
}
