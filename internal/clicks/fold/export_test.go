package fold

import (
	"time"
)

// NotAhead is up to when counts are complete, as the clock says.
func NotAhead(complete, now time.Time) time.Time { return notAhead(complete, now) }

const FlushThreshold = flushThreshold
