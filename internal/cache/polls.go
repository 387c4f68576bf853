package cache

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// hearLimit bounds the wait for the change log: some ten times what reading its end takes,
	// with the pause before.
	hearLimit = 250 * time.Millisecond
	// feedLimit is how old the last contact with the change log may be before codes
	// count as never issued no more, entries as fresh only for disconnectedTTL (and the server as unready).
	feedLimit = 5 * time.Second
	// silence is how long the bus may say nothing before it is not relied upon. Each
	// process says each second how far it knows the change log, and hears itself.
	silence = 2500 * time.Millisecond
)

// polls is when the change log was read, and how look-ups wait for it: for one reading
// together, however many they are.
//
// Invariant: times only grow, and each waiting look-up is released by the next reading that
// reaches the end of the log. Without Config.Shared there is no log to wait for.
type polls struct {
	clock          clock
	shared         bool
	wanted         chan struct{} // holds one request to read the log
	read           atomic.Int64  // when the log was last read to its end
	confirmed      atomic.Int64  // when the bus last said that there is nothing to read
	disconnectedAt atomic.Int64  // from then on nothing was heard for feedLimit; read by each hit

	mu    sync.Mutex
	began int64         // guarded by mu: when the last reading that reached the end began
	next  chan struct{} // guarded by mu: closed with the next such; nil = no look-up waits
}

// poke has the change log read soon.
func (p *polls) poke() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// ended notes a reading that reached the log's end.
func (p *polls) ended(began int64) {
	p.read.Store(p.clock.now())
	p.contacted()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = began
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}

// confirm notes that the bus has nothing that the log has to be read for.
func (p *polls) confirm() {
	p.confirmed.Store(p.clock.now())
	p.contacted()
}

// contacted puts off when this process counts as disconnected.
func (p *polls) contacted() {
	if p.disconnectedAt.Store(math.MaxInt64); p.shared {
		p.disconnectedAt.Store(p.clock.now() + int64(feedLimit))
	}
}

// disconnected reports whether changes may have been missed for long: neither the log nor the bus was heard.
func (p *polls) disconnected(now int64) bool { return now >= p.disconnectedAt.Load() }

// quiet reports whether the bus confirmed nothing for so long that it is not relied upon.
func (p *polls) quiet() bool { return p.clock.now()-p.confirmed.Load() > int64(silence) }

// staleness is the age of the last contact with the log.
func (p *polls) staleness() time.Duration {
	if !p.shared {
		return 0
	}
	return time.Duration(p.clock.now() - max(p.read.Load(), p.confirmed.Load()))
}

// current reports whether the log itself was read lately. The bus alone is no evidence: a
// process may die between the create of a link and its note.
func (p *polls) current() bool {
	return !p.shared || p.clock.now()-p.read.Load() <= int64(feedLimit)
}

// after returns nil when a reading that began after now has reached the end, and otherwise
// a channel that is closed with the next that does.
func (p *polls) after(now int64) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began > now {
		return nil
	}
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.next
}

// heardAll reports whether every change that was acknowledged before the call has been
// heard. With a shared store it waits for that: otherwise a link that another process has
// just created would be unknown here for a second. A scan of random codes makes the process
// read the end of the log up to fifty times a second, for all look-ups together.
func (p *polls) heardAll(ctx context.Context) bool {
	if !p.shared {
		return true
	}
	now := p.clock.now()
	ctx, cancel := context.WithTimeout(ctx, hearLimit)
	defer cancel()
	for {
		next := p.after(now)
		if next == nil {
			return true
		}
		p.poke()
		select {
		case <-ctx.Done():
			return false
		case <-next:
		}
	}
}
