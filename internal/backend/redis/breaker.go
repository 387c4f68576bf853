package redis

import (
	"sync"
	"time"
)

const (
	// breakAfter is how many failures in a row open the breaker.
	breakAfter = 5
	// breakOver is how far apart the first and the last of them are, at least: calls of one
	// moment fail together when the server was held up once, and that is no reason to leave it
	// alone. Visitors wait for five milliseconds each, meanwhile.
	breakOver = 25 * time.Millisecond
)

// breaker spares callers a server that does not answer. Closed, it lets every call go;
// after some failures in a row it opens, and lets none go until somebody who has the time
// (Client.Run) found out that the server answers again and closes it. It is safe for many
// goroutines.
type breaker struct {
	mu       sync.Mutex
	failures int           // in a row; guarded by mu
	first    time.Time     // when they began; guarded by mu
	refusing bool          // guarded by mu
	opened   chan struct{} // has one element from the opening on, until it was taken
}

func newBreaker() *breaker { return &breaker{opened: make(chan struct{}, 1)} }

// open reports whether calls are refused.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusing
}

// answered says that the server answered a call. One that was under way when the breaker
// opened does not close it.
func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = 0
}

// failed says that it did not, which was clear at now.
func (b *breaker) failed(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures++; b.failures == 1 {
		b.first = now
	}
	if b.refusing || b.failures < breakAfter || now.Sub(b.first) < breakOver {
		return
	}
	b.refusing = true
	select {
	case b.opened <- struct{}{}:
	default:
	}
}

// shut closes it.
func (b *breaker) shut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.refusing = 0, false
}
