package lane

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// The time-outs of states; lingerTimeout is another.
const (
	headTimeout  = 10 * time.Second // also of a PROXY header and of a TLS handshake
	idleTimeout  = 75 * time.Second
	writeTimeout = 30 * time.Second // of a client that does not read its answer
)

// DrainIdle is how long a draining lane waits for a connection's next request. One that
// is closed while its client sends a request fails that request; one that is silent
// for so long most likely has none to send.
const DrainIdle = time.Second

// timeout returns how long a state may last; 0 = without a limit.
func (s state) timeout() time.Duration {
	switch s {
	case stateHandshake, stateNew, stateReading:
		return headTimeout
	case stateIdle, stateUnread:
		return idleTimeout
	case stateWriting:
		return writeTimeout
	case stateLingering:
		return lingerTimeout
	case stateResolving, stateHTTP: // the resolver's time-outs, and net/http's
	}
	return 0
}

// Run keeps the clock and closes connections that time out or are evicted ahead of need, until ctx
// ends. Shutdown needs it, so it ends after Shutdown.
func (l *Lane) Run(ctx context.Context) error {
	t := time.NewTicker(tick)
	defer t.Stop()
	faster := l.clock.faster
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-faster:
			faster = nil
			t.Reset(drainTick)
		case now := <-t.C:
			l.clock.set(now)
			l.closeTimedOut()
		case <-l.conns.nearlyFull:
			l.conns.evictAhead(l.cfg.MaxConns, &l.stats)
		}
	}
}

// closeTimedOut closes what timed out. Thousands may at once, and a close waits for a reader
// to return: so the lock is not held meanwhile, and a connection that changed since is left alone.
func (l *Lane) closeTimedOut() {
	type found struct {
		c      *conn
		status uint64
	}
	var late []found
	now := l.clock.now()
	draining, began := l.draining.Load(), l.drainBegan.Load()
	l.conns.each(func(c *conn) {
		status := c.status.Load()
		s, since := stateOf(status)
		timeout := s.timeout()
		if draining && (s == stateIdle || s == stateUnread || s == stateNew) {
			timeout, since = DrainIdle, max(since, began)
		}
		if timeout > 0 && now-since > timeout.Milliseconds() {
			late = append(late, found{c, status})
			return
		}
		if s == stateUnread && now-since > 2*tick.Milliseconds() {
			c.tcp.interrupt()
		}
	})
	for _, f := range late {
		if f.c.status.Load() == f.status && f.c.tcp.closeOnce() {
			l.stats.timedOut.Add(1)
		}
	}
}

const (
	// tick is the clock's step, by which every time-out may be too long.
	tick = 250 * time.Millisecond
	// drainTick is its step while draining, where a second is the time-out.
	drainTick = 50 * time.Millisecond
)

// clock is coarse time that costs a reader one load: milliseconds since it was first
// set, and the value of Date.
type clock struct {
	start  time.Time // set once, by the first set
	millis atomic.Int64
	date   atomic.Pointer[[len(http.TimeFormat)]byte]
	second int64 // of date; owned by the caller of set

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

// precise is now in connlimit's unit, without the delay: it is a system call.
func (c *clock) precise() int64 { return time.Since(c.start).Microseconds() }

// micros is now in connlimit's unit.
func micros(millis int64) int64 { return millis * 1000 }

// dateValue returns the value of Date, which is read-only.
func (c *clock) dateValue() []byte { return c.date.Load()[:] }

// speedUp makes the ticks short. It is called once.
func (c *clock) speedUp() { close(c.faster) }
