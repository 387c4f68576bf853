package doctor

import (
	"context"
	"time"
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
		e.fail("clock", "set the clock: until then expiry and statistics follow a wrong one",
			"it says %s, and %s was recorded at %s", e.Now.UTC().Format(time.RFC3339), e.what, e.newest.Format(time.RFC3339))
	}
	begin := time.Now()
	wait := time.NewTimer(watched)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return
	}
	end := time.Now()
	if off := (end.Round(0).Sub(begin.Round(0)) - end.Sub(begin)).Abs(); off > stepped {
		e.warn("clock", "let one program keep the time", "it moved by %s while it was looked at", off)
		return
	}
	if !synchronised() {
		e.warn("clock", "run an NTP client: expiry is as exact as the clock", "the kernel says that nothing keeps it right")
		return
	}
	if e.newest.Sub(e.Now) <= ahead {
		e.ok("clock", "it runs evenly, and nothing was recorded in its future")
	}
}
