package lane

import (
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// tick is the clock's step: what every limit may be too long by.
	tick = 250 * time.Millisecond
	// drainTick is its step while draining, where a second is the limit.
	drainTick = 50 * time.Millisecond
)

// clock is coarse time that costs a reader one load: milliseconds since it was first
// set, and the value of Date.
type clock struct {
	start  time.Time // set once, by the first set
	millis atomic.Int64
	date   atomic.Pointer[[len(http.TimeFormat)]byte]
	second int64 // of date; owned by whoever calls set

	faster chan struct{} // closed when drainTick begins
}

// set is called by one goroutine at a time.
func (c *clock) set(now time.Time) {
	if c.start.IsZero() {
		c.start, c.faster = now, make(chan struct{})
	}
	c.millis.Store(now.Sub(c.start).Milliseconds())
	if second := now.Unix(); second != c.second {
		c.second = second
		var text [len(http.TimeFormat)]byte
		now.UTC().AppendFormat(text[:0], http.TimeFormat)
		c.date.Store(&text)
	}
}

// now returns milliseconds since the clock was first set, at most a tick old.
func (c *clock) now() int64 { return c.millis.Load() }

// precise is now in connlimit's unit, without the delay: it asks the system.
func (c *clock) precise() int64 { return time.Since(c.start).Microseconds() }

// micros is now in connlimit's unit.
func micros(millis int64) int64 { return millis * 1000 }

// dateValue returns the value of Date; nobody may change it.
func (c *clock) dateValue() []byte { return c.date.Load()[:] }

// hurry makes the ticks short. It is called once.
func (c *clock) hurry() { close(c.faster) }
