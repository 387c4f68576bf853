package lane

import (
	"sync"

	"curt/internal/connlimit"
)

// connections are all that count against Config.MaxConns: the lane's own, and those at net/http.
// mu is a leaf: under it connections are marked, and closed in bulk at the end.
type connections struct {
	mu            sync.Mutex
	serving       set  // guarded by mu; in the lane
	lingering     set  // guarded by mu; closed by net/http
	http          set  // guarded by mu; at net/http
	closed        bool // guarded by mu; no connection is added or resumed
	lingersClosed bool // guarded by mu; no connection begins to linger

	evicting   int                     // guarded by mu; evicted, and not yet removed
	picker     connlimit.Picker[*conn] // guarded by mu
	nearlyFull chan struct{}           // holds one: evictAhead is due
}

// set is some connections. connections.mu guards it.
type set struct {
	all   []*conn       // conn.index is the index
	empty chan struct{} // closed when all is empty and none was called
	await bool          // none was called
}

func (s *set) add(c *conn) {
	c.in, c.index = s, len(s.all)
	s.all = append(s.all, c)
}

func (s *set) remove(c *conn) {
	last := len(s.all) - 1
	s.all[last].index, s.all[c.index] = c.index, s.all[last]
	s.all[last], c.in = nil, nil
	s.all = s.all[:last]
	s.notify()
}

// none returns a channel that is closed once the set is empty.
func (s *set) none() <-chan struct{} {
	empty := s.empty
	s.await = true
	s.notify()
	return empty
}

// notify closes the channel of none if the set is empty.
func (s *set) notify() {
	if s.await && len(s.all) == 0 {
		close(s.empty)
		s.empty, s.await = make(chan struct{}), false
	}
}

func (s *set) close() {
	for _, c := range s.all {
		c.tcp.closeOnce()
	}
}

func (s *connections) init() {
	s.serving.empty, s.lingering.empty = make(chan struct{}), make(chan struct{})
	s.nearlyFull = make(chan struct{}, 1)
}

// add adds an accepted connection. With little room left it has evictAhead close others, and
// with none evicts some itself, in the order of internal/connlimit. It reports false when none can
// be evicted.
func (s *connections) add(c *conn, limit int, stats *counters) bool {
	s.mu.Lock()
	var evicted []*conn
	free := s.free(limit)
	if free <= 0 && !s.closed {
		evicted = s.evict(connlimit.Batch(limit), limit, false)
	}
	refused := s.closed || free <= 0 && len(evicted) == 0
	if !refused {
		s.serving.add(c)
	}
	s.mu.Unlock()
	if refused {
		stats.refused.Add(1)
	}
	if free <= connlimit.Ahead(limit)/2 {
		select {
		case s.nearlyFull <- struct{}{}:
		default:
		}
	}
	closeEvicted(evicted, stats)
	return !refused
}

// free is how many connections fit below the limit; mu is held.
func (s *connections) free(limit int) int {
	return limit - len(s.serving.all) - len(s.lingering.all) - len(s.http.all) + s.evicting
}

// evictAhead evicts before the limit is reached, so that no new connection waits for it.
func (s *connections) evictAhead(limit int, stats *counters) {
	s.mu.Lock()
	var evicted []*conn
	if n := connlimit.Ahead(limit) - s.free(limit); n > 0 && !s.closed {
		evicted = s.evict(n, limit, false)
	}
	s.mu.Unlock()
	closeEvicted(evicted, stats)
}

// evictRequests evicts connections whose requests take too much memory at net/http: gate says by
// how many there are too many.
func (s *connections) evictRequests(gate *connlimit.Gate, limit int, stats *counters) {
	s.mu.Lock()
	var evicted []*conn
	if n := gate.Excess() - s.evicting; n > 0 {
		evicted = s.evict(n+connlimit.Batch(limit), limit, true)
	}
	s.mu.Unlock()
	closeEvicted(evicted, stats)
}

// evict marks up to n connections, which the caller closes after it unlocked mu; mu is held. With
// requests only unfinished requests at net/http are evicted.
func (s *connections) evict(n, limit int, requests bool) []*conn {
	for _, some := range [...][]*conn{s.serving.all, s.lingering.all, s.http.all} {
		for _, c := range some {
			if !c.evicted && !c.tcp.closed.Load() && (!requests || c.unfinishedAtHTTP()) {
				s.picker.Add(c.candidate())
			}
		}
	}
	evicted := s.picker.Pick(n, limit)
	for _, c := range evicted {
		c.evicted = true
	}
	s.evicting += len(evicted)
	return evicted
}

// closeEvicted closes what evict marked. A close waits for readers to return, so mu is not held.
func closeEvicted(evicted []*conn, stats *counters) {
	for _, c := range evicted {
		if c.tcp.closeOnce() {
			stats.evicted.Add(1)
		}
	}
}

// candidate describes c to the picker. Any goroutine may call it.
func (c *conn) candidate() connlimit.Candidate[*conn] {
	s, since := c.status.get()
	found := connlimit.Candidate[*conn]{Conn: c, Kind: s.kind(), Since: max(micros(since), c.accepted), Network: connlimit.Network(c.network.Load())}
	if s != stateHTTP {
		return found
	}
	var unfinished bool
	if found.Since, found.Weight, unfinished = c.progress.Owes(); unfinished {
		found.Kind = connlimit.Unfinished
	}
	found.Network = c.progress.Network()
	return found
}

// kind is what a state means for eviction. With a request at net/http, progress knows more.
func (s state) kind() connlimit.Kind {
	switch s {
	case stateHandshake, stateNew, stateReading, stateWriting:
		return connlimit.Unfinished
	case stateIdle, stateUnread:
		return connlimit.Idle
	case stateLingering:
		return connlimit.Leaving
	case stateResolving, stateHTTP:
	}
	return connlimit.Working
}

// unfinishedAtHTTP reports whether c has a request at net/http that waits for its client.
func (c *conn) unfinishedAtHTTP() bool {
	if s, _ := c.status.get(); s != stateHTTP {
		return false
	}
	_, _, unfinished := c.progress.Owes()
	return unfinished
}

// drop removes c from its set; mu is held.
func (s *connections) drop(c *conn) {
	c.in.remove(c)
	if c.evicted {
		c.evicted = false
		s.evicting--
	}
}

// remove removes c from the lane. With handedOff it is net/http's, which may have closed it already.
func (s *connections) remove(c *conn, handedOff bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.in == nil {
		return
	}
	s.drop(c)
	if handedOff {
		s.http.add(c)
	}
}

// removeHTTP2 removes an HTTP/2 connection that net/http closed. It is called once for each.
func (s *connections) removeHTTP2(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(c)
}

// removeHTTP removes another connection that net/http closed, old, once for each. If it lingers,
// it is c from now on; false = it does not linger, or not any longer.
func (s *connections) removeHTTP(old, c *conn, lingers bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(old)
	if !lingers || s.lingersClosed {
		return false
	}
	s.lingering.add(c)
	return true
}

// removeLingering removes a connection that lingered after net/http.
func (s *connections) removeLingering(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(c)
}

// resume is removeHTTP for a connection that continues in the lane as c.
func (s *connections) resume(old, c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(old)
	if s.closed || old.tcp.closed.Load() {
		return false
	}
	s.serving.add(c)
	return true
}

// none returns a channel that is closed once all connections of the lane have ended or
// were handed off.
func (s *connections) none() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serving.none()
}

// noneLingering is none for those that linger after net/http.
func (s *connections) noneLingering() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lingering.none()
}

// each calls f for every connection of the lane, under mu: f only marks and interrupts.
func (s *connections) each(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, some := range [...][]*conn{s.serving.all, s.lingering.all} {
		for _, c := range some {
			f(c)
		}
	}
}

// closeServing closes the connections of the lane, and no more are added.
func (s *connections) closeServing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.serving.close()
}

// closeLingering closes the connections that linger after net/http, and no more begin to.
func (s *connections) closeLingering() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lingersClosed = true
	s.lingering.close()
}

func (s *connections) count() (lane, http int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.serving.all) + len(s.lingering.all), len(s.http.all)
}
