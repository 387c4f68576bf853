package lane

import (
	"cmp"
	"slices"
	"sync"
)

// connections are those that the lane owns, and those that it gave away.
type connections struct {
	mu      sync.Mutex
	open    set  // guarded by mu; not yet given away
	parted  set  // guarded by mu; taken back from net/http to linger
	foreign set  // guarded by mu; at net/http, not yet closed
	ended   bool // guarded by mu; nobody is taken in any more
	settled bool // guarded by mu; nobody is taken back any more
}

// set is some connections. Who holds connections.mu may use it.
type set struct {
	all    []*conn       // conn.slot is the index
	empty  chan struct{} // closed when all is empty and somebody waits
	waited bool
}

func (s *set) put(c *conn) {
	c.in, c.slot = s, len(s.all)
	s.all = append(s.all, c)
}

func (s *set) drop(c *conn) {
	last := len(s.all) - 1
	s.all[last].slot, s.all[c.slot] = c.slot, s.all[last]
	s.all[last], c.in = nil, nil
	s.all = s.all[:last]
	s.report()
}

// none returns a channel that is closed once the set is empty.
func (s *set) none() <-chan struct{} {
	empty := s.empty
	s.waited = true
	s.report()
	return empty
}

// report tells a waiter that the set is empty.
func (s *set) report() {
	if s.waited && len(s.all) == 0 {
		close(s.empty)
		s.empty, s.waited = make(chan struct{}), false
	}
}

func (s *set) cut() {
	for _, c := range s.all {
		c.cut()
	}
}

func (s *connections) init() {
	s.open.empty, s.parted.empty = make(chan struct{}), make(chan struct{})
}

// sets are all that count against the cap. mu is held.
func (s *connections) sets() [3][]*conn { return [...][]*conn{s.open.all, s.parted.all, s.foreign.all} }

// evictShare is the part of the connections that is closed when there is no room:
// the oldest are found by looking at all, so one look should make room for many.
const evictShare = 128

// add takes c in, and makes room by closing those that had their last answer, failing
// that those that are idle longest, or whose head is under way longest, here or at net/http. It reports
// false when nobody can go.
func (s *connections) add(c *conn, limit int, stats *counters) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := len(s.open.all) + len(s.parted.all) + len(s.foreign.all)
	if s.ended || all >= limit && !s.evict(1+limit/evictShare, stats) {
		stats.refused.Add(1)
		return false
	}
	s.open.put(c)
	return true
}

// evict closes up to n connections; mu is held.
func (s *connections) evict(n int, stats *counters) bool {
	for _, wanted := range [][]phase{{parting}, {idle, unsure}, {fresh}, {heading}} {
		type aged struct {
			c     *conn
			since int64
		}
		var found []aged
		for _, some := range s.sets() {
			for _, c := range some {
				if p, since := c.phase(); slices.Contains(wanted, p) && !c.gone.Load() {
					found = append(found, aged{c, since})
				}
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

// remove forgets c; foreign says that net/http has it now, and may have closed it.
func (s *connections) remove(c *conn, foreign bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.in == nil {
		return
	}
	c.in.drop(c)
	if foreign {
		s.foreign.put(c)
	}
}

// leave is called once for each foreign HTTP/2 connection that net/http closed.
func (s *connections) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.in.drop(c)
}

// back is called once for each other one that net/http closed, which was away. It takes
// c, which is to linger, in for it and reports true; or false, when it has no reason to
// or no time.
func (s *connections) back(away, c *conn, lingers bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	away.in.drop(away)
	if !lingers || s.settled {
		return false
	}
	s.parted.put(c)
	return true
}

// home is back for a connection that the lane goes on with as c.
func (s *connections) home(away, c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	away.in.drop(away)
	if s.ended || away.gone.Load() {
		return false
	}
	s.open.put(c)
	return true
}

// gone forgets one that lingered.
func (s *connections) gone(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parted.drop(c)
}

// none returns a channel that is closed once all connections of the lane have ended or
// were given away.
func (s *connections) none() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open.none()
}

// noneParted is none for those that were taken back.
func (s *connections) noneParted() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parted.none()
}

// each calls f for every connection of the lane, under the lock: f only marks and closes.
func (s *connections) each(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, some := range [][]*conn{s.open.all, s.parted.all} {
		for _, c := range some {
			f(c)
		}
	}
}

// shut cuts off whoever is left, and takes nobody in any more.
func (s *connections) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.open.cut()
}

// settle cuts off whoever was taken back, and takes nobody back any more.
func (s *connections) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = true
	s.parted.cut()
}

func (s *connections) count() (open, foreign int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open.all) + len(s.parted.all), len(s.foreign.all)
}
