package lane

import (
	"cmp"
	"slices"
	"sync"
)

// connections are those that the lane owns, and the number of those that it gave
// away.
type connections struct {
	mu      sync.Mutex
	open    []*conn       // guarded by mu; conn.slot is the index
	foreign int           // guarded by mu; at net/http, not yet closed
	empty   chan struct{} // guarded by mu; closed when open is empty
	waited  bool          // guarded by mu; somebody waits on empty
	ended   bool          // guarded by mu; nobody is taken in any more
}

func (s *connections) init() { s.empty = make(chan struct{}) }

// evictShare is the part of the connections that is closed when there is no room:
// the oldest are found by looking at all, so one look should make room for many.
const evictShare = 128

// add takes c in, and makes room by closing those that are idle longest, or failing
// that those whose head is under way longest. It reports false when nobody can go.
func (s *connections) add(c *conn, limit int, stats *counters) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || len(s.open)+s.foreign >= limit && !s.evict(1+limit/evictShare, stats) {
		stats.refused.Add(1)
		return false
	}
	c.slot = len(s.open)
	s.open = append(s.open, c)
	return true
}

// evict closes up to n connections; mu is held.
func (s *connections) evict(n int, stats *counters) bool {
	for _, wanted := range [][]phase{{idle, unsure}, {fresh}, {heading}} {
		type aged struct {
			c     *conn
			since int64
		}
		var found []aged
		for _, c := range s.open {
			if p, since := c.phase(); slices.Contains(wanted, p) && !c.gone.Load() {
				found = append(found, aged{c, since})
			}
		}
		if len(found) == 0 {
			continue
		}
		slices.SortFunc(found, func(a, b aged) int { return cmp.Compare(a.since, b.since) })
		for _, a := range found[:min(n, len(found))] {
			if a.c.late() {
				stats.evicted.Add(1)
			}
		}
		return true
	}
	return false
}

// remove forgets c; foreign says that net/http has it now.
func (s *connections) remove(c *conn, foreign bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.open) - 1
	s.open[last].slot, s.open[c.slot] = c.slot, s.open[last]
	s.open[last] = nil
	s.open = s.open[:last]
	if foreign {
		s.foreign++
	}
	s.report()
}

// report tells a waiter that the lane is empty; mu is held.
func (s *connections) report() {
	if s.waited && len(s.open) == 0 {
		close(s.empty)
		s.empty, s.waited = make(chan struct{}), false
	}
}

// leave is called once for each foreign connection that net/http closed.
func (s *connections) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreign--
}

// none returns a channel that is closed once the lane has no connection.
func (s *connections) none() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	empty := s.empty
	s.waited = true
	s.report()
	return empty
}

// each calls f for every connection, under the lock: f only marks and closes.
func (s *connections) each(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		f(c)
	}
}

// shut cuts off whoever is left, and takes nobody in any more.
func (s *connections) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, c := range s.open {
		c.cut()
	}
}

func (s *connections) count() (open, foreign int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open), s.foreign
}
