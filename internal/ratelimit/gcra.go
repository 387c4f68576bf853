package ratelimit

import (
	"fmt"
	"time"
)

// maxFill bounds the time in which an empty bucket fills, so that no sum overflows.
const maxFill = 100 * 365 * 24 * time.Hour

// Validate returns ErrInvalid, wrapped with the reason, for a limit that no store
// takes.
func (l Limit) Validate() error {
	if l.Count <= 0 || l.Period <= 0 || l.Burst <= 0 {
		return fmt.Errorf("%w: %d per %v with a burst of %d", ErrInvalid, l.Count, l.Period, l.Burst)
	}
	if int64(l.Burst) > int64(maxFill)/int64(l.Interval()) {
		return fmt.Errorf("%w: a burst of %d fills in more than %v", ErrInvalid, l.Burst, maxFill)
	}
	return nil
}

// Validate returns ErrInvalid, wrapped with the reason, for a bad limit or a
// negative cost.
func (c Charge) Validate() error {
	if c.Cost < 0 {
		return fmt.Errorf("%w: cost %d", ErrInvalid, c.Cost)
	}
	return c.Limit.Validate()
}

// Interval is the time in which one cell comes back, rounded up to a nanosecond: a
// bucket never gives more than its rate, and at most a nanosecond per cell less.
func (l Limit) Interval() time.Duration {
	return (l.Period-1)/time.Duration(l.Count) + 1
}

// Take is the algorithm. A bucket is one number, the time at which it is full
// again ("theoretical arrival time"); any time up to now means that it is full. Times
// are nanoseconds since any moment that the store chose. Take returns the number
// after the charge, which is full itself when the charge is refused. The charge is
// valid.
func Take(full, now int64, c Charge) (after int64, v Verdict) {
	interval := int64(c.Limit.Interval())
	size := interval * int64(c.Limit.Burst)
	start := max(full, now)
	v.Limit = c.Limit.Burst
	if c.Cost <= c.Limit.Burst {
		after = start + interval*int64(c.Cost)
		v.Allowed = after-now <= size
		v.RetryAfter = time.Duration(after - now - size)
	} else {
		v.RetryAfter = time.Duration(start - now)
	}
	if v.Allowed {
		full, start, v.RetryAfter = after, after, 0
	}
	v.Remaining = int(max(size-(start-now), 0) / interval)
	v.ResetAfter = time.Duration(start - now)
	return full, v
}
