// Package repeatlog keeps what is wrong for long from filling the log: a condition is
// logged when it begins, then each minute with how often it was met, and once when it
// is over. It imports nothing of ours.
package repeatlog

import (
	"log/slog"
	"sync"
	"time"
)

// every is how often a condition that lasts is logged, and for how long it must not have
// been met to be over: what comes and goes is one condition, not a line each time.
const every = time.Minute

// Condition is something that is found again and again, such as a disk that is full. Its
// zero value was never met. Any goroutine may call its methods. What time it is the
// caller says.
//
// Who logs does it as ever, with the attribute that Met or Over returns:
//
//	if again, due := c.Met(time.Now()); due {
//		log.ErrorContext(ctx, "the disk is full", slog.Any("err", err), again)
//	}
type Condition struct {
	mu     sync.Mutex
	began  time.Time // guarded by mu; zero = it does not last
	met    time.Time // guarded by mu; the last time
	logged time.Time // guarded by mu; the last time
	times  uint64    // guarded by mu; since it began
}

// Met notes that the condition was met, and reports whether to log it: the first time, and
// then once a minute. Beside the first line nothing need be said: the attribute is empty.
func (c *Condition) Met(now time.Time) (again slog.Attr, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.met = now
	c.times++
	if c.began.IsZero() {
		c.began, c.logged = now, now
		return slog.Group(""), true
	}
	if now.Sub(c.logged) < every {
		return slog.Attr{}, false
	}
	c.logged = now
	return c.sum(), true
}

// Over notes that all is well now, and reports whether to log that the condition is over:
// once, when it was not met for a minute. It may be called all the time.
func (c *Condition) Over(now time.Time) (sum slog.Attr, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() || now.Sub(c.met) < every {
		return slog.Attr{}, false
	}
	sum = c.sum()
	c.began, c.times = time.Time{}, 0
	return sum, true
}

// sum says how often it was met; mu is held.
func (c *Condition) sum() slog.Attr {
	return slog.Group("", slog.Uint64("times", c.times), slog.Time("since", c.began))
}
