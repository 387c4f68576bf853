// Package repeatlog keeps what is wrong for long from filling the log: a condition is
// logged when it begins, then each minute with how often it was met, and once when it
// is over. It imports nothing of ours.
package repeatlog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// every is how often a condition that lasts is logged, and for how long it must not have
// been met to be over: what comes and goes is one condition, not a line each time.
const every = time.Minute

// Condition is a failure that repeats, such as a disk that is full. The zero value is ready to use by
// many goroutines. The caller says what time it is.
type Condition struct {
	mu     sync.Mutex
	began  time.Time // guarded by mu; zero = it does not last
	met    time.Time // guarded by mu; the last time
	logged time.Time // guarded by mu; the last time
	times  uint64    // guarded by mu; since it began
}

// Log notes that the condition was met, and logs it the first time and then once a minute. err may be
// nil. It reports whether there is a line.
func (c *Condition) Log(ctx context.Context, now time.Time, log *slog.Logger, level slog.Level, message string, err error, attrs ...slog.Attr) (logged bool) {
	if err != nil {
		attrs = append(attrs, slog.Any("err", err))
	}
	c.mu.Lock()
	c.met = now
	c.times++
	due := true
	if c.began.IsZero() {
		c.began = now
	} else if due = now.Sub(c.logged) >= every; due {
		attrs = append(attrs, c.sum())
	}
	if due {
		c.logged = now
	}
	c.mu.Unlock()
	if !due || !log.Enabled(ctx, level) {
		return false
	}
	log.LogAttrs(ctx, level, message, attrs...)
	return true
}

// LogRecovery notes that all is well. It logs the end of the condition once, when it was not met for a
// minute, and reports whether it has ended by that. Without a message it logs nothing.
func (c *Condition) LogRecovery(ctx context.Context, now time.Time, log *slog.Logger, message string, attrs ...slog.Attr) (ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() || now.Sub(c.met) < every {
		return false
	}
	if message != "" {
		log.LogAttrs(ctx, slog.LevelInfo, message, append(attrs, c.sum())...)
	}
	c.began, c.times = time.Time{}, 0
	return true
}

// sum says how often it was met; mu is held.
func (c *Condition) sum() slog.Attr {
	return slog.Group("", slog.Uint64("times", c.times), slog.Time("since", c.began))
}
