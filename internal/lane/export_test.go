package lane

import (
	"context"
	"slices"
	"time"
)

// At sets the lane's clock as if it had begun so long ago, and closes what times out.
func (l *Lane) At(since time.Duration) {
	l.clock.set(l.clock.start.Add(since))
	l.closeTimedOut()
}

// States are the names of all states, in their order.
func States() []string {
	return []string{"handshake", "new", "reading", "resolving", "writing", "idle", "unread", "http", "lingering"}
}

func (c *conn) stateName() string {
	s, _ := c.status.get()
	return States()[s]
}

// States counts the connections of the lane in each state.
func (l *Lane) States() map[string]int {
	n := map[string]int{}
	l.conns.each(func(c *conn) { n[c.stateName()]++ })
	return n
}

// HTTPStates is States of those at net/http.
func (l *Lane) HTTPStates() map[string]int {
	l.conns.mu.Lock()
	defer l.conns.mu.Unlock()
	n := map[string]int{}
	for _, c := range l.conns.http.all {
		n[c.stateName()]++
	}
	return n
}

// Unfinished counts the connections whose request at net/http waits for its client.
func (l *Lane) Unfinished() (n int) {
	l.conns.mu.Lock()
	defer l.conns.mu.Unlock()
	for _, c := range l.conns.http.all {
		if c.unfinishedAtHTTP() {
			n++
		}
	}
	return n
}

// Cut closes every connection.
func (l *Lane) Cut(ctx context.Context) error { return l.Shutdown(ctx) }

// Interrupt interrupts every connection, as the time-outs do with those in state unread.
func (l *Lane) Interrupt() { l.conns.each(func(c *conn) { c.tcp.interrupt() }) }

// EvictTwice evicts n connections and, before any of them was closed, n others. It returns how
// many were chosen twice.
func (l *Lane) EvictTwice(n int) (twice int) {
	s := &l.conns
	s.mu.Lock()
	first := s.evict(n, l.cfg.MaxConns, false)
	second := s.evict(n, l.cfg.MaxConns, false)
	s.mu.Unlock()
	for _, c := range second {
		if slices.Contains(first, c) {
			twice++
		}
	}
	closeEvicted(first, &l.stats)
	closeEvicted(second, &l.stats)
	return twice
}

// Evicting is how many were evicted and have not been removed.
func (l *Lane) Evicting() int {
	l.conns.mu.Lock()
	defer l.conns.mu.Unlock()
	return l.conns.evicting
}
