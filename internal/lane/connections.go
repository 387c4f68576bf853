package lane

import (
	"sync"

	"curt/internal/connlimit"
)

// connections are those that the lane owns, and those that it gave away.
type connections struct {
	mu      sync.Mutex
	open    set  // guarded by mu; not yet given away
	parted  set  // guarded by mu; taken back from net/http to linger
	foreign set  // guarded by mu; at net/http, not yet closed
	ended   bool // guarded by mu; nobody is taken in any more
	settled bool // guarded by mu; nobody is taken back any more

	going  int                     // guarded by mu; those that were evicted and have not left yet
	picker connlimit.Picker[*conn] // guarded by mu
	scarce chan struct{}           // holds one: there is little room left
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

// drop takes c out of its set; mu is held.
func (s *connections) drop(c *conn) {
	c.in.drop(c)
	if c.evicted {
		c.evicted = false
		s.going--
	}
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
	s.scarce = make(chan struct{}, 1)
}

// sets are all that count against the cap. mu is held.
func (s *connections) sets() [3][]*conn { return [...][]*conn{s.open.all, s.parted.all, s.foreign.all} }

// add takes c in. Where there is little room it has others closed, which makeRoom does, and
// where there is none closes them itself, here or at net/http: internal/connlimit says
// whom. It reports false when nobody can go.
func (s *connections) add(c *conn, limit int, stats *counters) bool {
	s.mu.Lock()
	var leave []*conn
	room := s.room(limit)
	if room <= 0 && !s.ended {
		leave = s.evict(connlimit.Batch(limit), limit, false)
	}
	refused := s.ended || room <= 0 && len(leave) == 0
	if !refused {
		s.open.put(c)
	}
	s.mu.Unlock()
	if refused {
		stats.refused.Add(1)
	}
	if room <= connlimit.Ahead(limit)/2 {
		select {
		case s.scarce <- struct{}{}:
		default:
		}
	}
	cut(leave, stats)
	return !refused
}

// room is how many may come before others have to go; mu is held.
func (s *connections) room(limit int) int {
	return limit - len(s.open.all) - len(s.parted.all) - len(s.foreign.all) + s.going
}

// makeRoom closes others before there is no room, so that who comes does not wait for it.
func (s *connections) makeRoom(limit int, stats *counters) {
	s.mu.Lock()
	var leave []*conn
	if n := connlimit.Ahead(limit) - s.room(limit); n > 0 && !s.ended {
		leave = s.evict(n, limit, false)
	}
	s.mu.Unlock()
	cut(leave, stats)
}

// crowded closes connections whose requests take too much room at net/http: gate says how
// many there are too many.
func (s *connections) crowded(gate *connlimit.Gate, limit int, stats *counters) {
	s.mu.Lock()
	var leave []*conn
	if n := gate.Crowd() - s.going; n > 0 {
		leave = s.evict(n+connlimit.Batch(limit), limit, true)
	}
	s.mu.Unlock()
	cut(leave, stats)
}

// evict returns up to n connections that are to be closed; mu is held. requests asks for
// requests at net/http alone.
func (s *connections) evict(n, limit int, requests bool) []*conn {
	for _, some := range s.sets() {
		for _, c := range some {
			if !c.evicted && !c.gone.Load() && (!requests || c.owes()) { // who was evicted is cut behind the lock
				s.picker.Add(c.candidate())
			}
		}
	}
	leave := s.picker.Pick(n, limit)
	for _, c := range leave {
		c.evicted = true
	}
	s.going += len(leave)
	return leave
}

// cut closes whoever was evicted. It waits for readers to let go, so nobody holds the lock.
func cut(leave []*conn, stats *counters) {
	for _, c := range leave {
		if c.late() {
			stats.evicted.Add(1)
		}
	}
}

// candidate is c as it is judged. Another goroutine may call it.
func (c *conn) candidate() connlimit.Candidate[*conn] {
	p, since := c.phase()
	found := connlimit.Candidate[*conn]{Conn: c, Kind: p.kind(), Since: max(micros(since), c.born), Network: connlimit.Network(c.network.Load())}
	if p != handing {
		return found
	}
	var owes bool
	if found.Since, found.Weight, owes = c.progress.Owes(); owes {
		found.Kind = connlimit.Unfinished
	}
	found.Network = c.progress.Network()
	return found
}

// owes reports whether c has a request at net/http that waits for its client.
func (c *conn) owes() bool {
	if p, _ := c.phase(); p != handing {
		return false
	}
	_, _, owes := c.progress.Owes()
	return owes
}

// remove forgets c; foreign says that net/http has it now, and may have closed it.
func (s *connections) remove(c *conn, foreign bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.in == nil {
		return
	}
	s.drop(c)
	if foreign {
		s.foreign.put(c)
	}
}

// leave is called once for each foreign HTTP/2 connection that net/http closed.
func (s *connections) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(c)
}

// back is called once for each other one that net/http closed, which was away. It takes
// c, which is to linger, in for it and reports true; or false, when it has no reason to
// or no time.
func (s *connections) back(away, c *conn, lingers bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(away)
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
	s.drop(away)
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
	s.drop(c)
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
