package doctor

import (
	"context"
	"time"

	"curt/internal/background"
)

const (
	// watched is how long the clock is looked at, and stepped how far it may move
	// meanwhile: what keeps clocks right slews them by 0.05 % at most.
	watched = 200 * time.Millisecond
	stepped = 20 * time.Millisecond
	// ahead is how far records may lie in the future, for clocks that are kept right.
	ahead = 10 * time.Second
)

// clock compares the clock with what was recorded, and with the one that only counts.
func (e *examination) clock(ctx context.Context) {
	if late := e.newest.Sub(e.Now); late > ahead {
		e.fail("clock", "set the clock: until then expiry and statistics use a wrong time",
			"it shows %s, but %s was recorded at %s", e.Now.UTC().Format(time.RFC3339), e.what, e.newest.Format(time.RFC3339))
	}
	begin := time.Now()
	if !background.Sleep(ctx, watched) {
		return
	}
	end := time.Now()
	if off := (end.Round(0).Sub(begin.Round(0)) - end.Sub(begin)).Abs(); off > stepped {
		e.warn("clock", "run only one time synchronisation service", "it jumped by %s during the check", off)
		return
	}
	if !synchronised() {
		e.warn("clock", "run an NTP client: expiry is only as exact as the clock", "not synchronised, according to the kernel")
		return
	}
	if e.newest.Sub(e.Now) <= ahead {
		e.ok("clock", "steady, no records in the future")
	}
}
