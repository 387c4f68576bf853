package clicks

import (
	"context"
	"log/slog"
	"time"

	"curt/internal/repeatlog"
)

// clockJump is how far the clock on the wall may part at once from the one that only goes
// on: more is no clock that is kept in time, but one that was set.
const clockJump = 5 * time.Second

// wallClock notices that the clock was set. Clicks bear its times, so days may then have
// clicks that came on another.
type wallClock struct {
	last   time.Time // with its reading of the monotonic clock
	jumped repeatlog.Condition
}

// look compares the clocks since the look before.
func (w *wallClock) look(ctx context.Context, now time.Time, log *slog.Logger) {
	last := w.last
	w.last = now
	if last.IsZero() {
		return
	}
	w.compare(ctx, now, now.Round(0).Sub(last.Round(0))-now.Sub(last), log)
}

// compare logs by how much the clock was set. A machine that slept looks the same where
// the monotonic clock sleeps with it.
func (w *wallClock) compare(ctx context.Context, now time.Time, by time.Duration, log *slog.Logger) {
	if by.Abs() < clockJump {
		_, _ = w.jumped.Over(now)
		return
	}
	if again, due := w.jumped.Met(now); due {
		log.WarnContext(ctx, "the clock jumped; clicks have the times that it shows", slog.Duration("by", by), again)
	}
}
