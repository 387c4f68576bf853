package capture

import (
	"context"
	"log/slog"
	"time"
)

// What tests of this package need and nobody else.

const (
	MaxReferrer = maxReferrer
	MaxLanguage = maxLanguage
	MaxQuery    = maxQuery
)

func (r *Ring) Wake() <-chan struct{} { return r.wake }

// WallClock notices that the clock was set.
type WallClock = wallClock

// Set has the clock on the wall set by some time.
func (w *wallClock) Set(ctx context.Context, now time.Time, by time.Duration, log *slog.Logger) {
	w.compare(ctx, now, by, log)
}

// Late has a tally note that less is written than is, as a kill between the two does.
func (t *Tally) Late(n uint64) { t.written(n) }
