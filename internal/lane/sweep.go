package lane

import (
	"context"
	"time"

	"curt/internal/connlimit"
)

// The limits of a connection's phases.
const (
	headLimit  = 10 * time.Second // also for a PROXY header and for a TLS handshake
	idleLimit  = 75 * time.Second
	writeLimit = 30 * time.Second // for a client that does not take its answer
)

// phase is what a connection is doing. The sweeper judges by it.
type phase uint8

const (
	greeting  phase = iota // PROXY header, TLS handshake
	fresh                  // accepted, and silent so far
	heading                // a head has begun
	idle                   // between requests
	unsure                 // idle, but the end of the stream may have come unseen; see rawConn
	resolving              // the resolver has limits of its own
	writing                // the client does not take the answer
	parting                // had its last answer, and lingers
	handing                // at net/http, or about to be, and with a request there; conn.progress tells more
)

// kind is what a phase means to who makes room. A connection at net/http that is busy has
// a progress that tells more.
func (p phase) kind() connlimit.Kind {
	switch p {
	case greeting, fresh, heading, writing:
		return connlimit.Unfinished
	case idle, unsure:
		return connlimit.Idle
	case parting:
		return connlimit.Leaving
	case resolving, handing:
	}
	return connlimit.Working
}

// limit returns how long a phase may last; 0 = as long as it likes.
func (p phase) limit() time.Duration {
	switch p {
	case greeting, fresh, heading:
		return headLimit
	case idle, unsure:
		return idleLimit
	case writing:
		return writeLimit
	case parting:
		return lingerTime
	case resolving, handing:
	}
	return 0
}

// Run keeps the clock and closes connections that are late or whose room is needed, until ctx ends. Drain
// needs it, so it ends after Drain.
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
			l.sweep()
		case <-l.conns.scarce:
			l.conns.makeRoom(l.cfg.MaxConns, &l.stats)
		}
	}
}

// sweep closes what is late. Thousands may be late at once, and a close waits for a reader
// to let go: so nobody holds the lock meanwhile, and who did something since is left alone.
func (l *Lane) sweep() {
	type found struct {
		c     *conn
		state uint64
	}
	var late []found
	now := l.clock.now()
	leaving, left := l.leaving.Load(), l.left.Load()
	l.conns.each(func(c *conn) {
		state := c.state.Load()
		p, since := phaseOf(state)
		limit := p.limit()
		if leaving && (p == idle || p == unsure || p == fresh) {
			limit, since = Silence, max(since, left)
		}
		if limit > 0 && now-since > limit.Milliseconds() {
			late = append(late, found{c, state})
			return
		}
		if p == unsure && now-since > 2*tick.Milliseconds() {
			c.wake()
		}
	})
	for _, f := range late {
		if f.c.state.Load() == f.state && f.c.late() {
			l.stats.late.Add(1)
		}
	}
}
