package server

import (
	"container/list"
	"net"
	"net/http"
	"sync"

	"curt/internal/lane"
)

// capped bounds the connections of a listener that net/http serves alone, as the lane
// bounds its own: who comes when there is no room takes the place of who is idle longest,
// failing that of who has sent nothing yet, or no whole head. When all are busy, the one
// that comes is closed.
type capped struct {
	net.Listener
	limit int

	mu     sync.Mutex
	open   int                    // guarded by mu; accepted, not yet closed
	spare  [spareStates]list.List // guarded by mu; of *guest, the oldest in front
	counts lane.Stats             // guarded by mu; without Foreign
}

// The states of a connection in which it may be closed to make room, in that order.
const (
	guestIdle    = iota // between two requests
	guestFresh          // silent so far
	guestHeading        // bytes came, and no whole head yet
	spareStates
	guestBusy = spareStates
)

// guest is an open connection of a capped listener.
type guest struct {
	net.Conn
	of    *capped
	state int           // guarded by of.mu
	place *list.Element // guarded by of.mu; nil = busy, closed or about to be
	gone  sync.Once     // counts it out
}

// Accept returns the next connection that there is room for.
func (l *capped) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err // as it is: net/http asks it whether to go on
		}
		if g := l.admit(nc); g != nil {
			return g, nil
		}
		_ = nc.Close()
	}
}

// admit makes room for nc, or returns nil.
func (l *capped) admit(nc net.Conn) *guest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.limit && !l.evict() {
		l.counts.Refused++
		return nil
	}
	l.open++
	l.counts.Accepted++
	g := &guest{Conn: nc, of: l, state: guestBusy}
	l.move(g, guestFresh)
	return g
}

// evict closes the connection that is the first to go; mu is held. It is counted out
// when net/http has noticed.
func (l *capped) evict() bool {
	for i := range l.spare {
		if oldest := l.spare[i].Front(); oldest != nil {
			g, _ := oldest.Value.(*guest)
			l.move(g, guestBusy)
			l.counts.Evicted++
			_ = g.Conn.Close()
			return true
		}
	}
	return false
}

// move changes the state of g; mu is held.
func (l *capped) move(g *guest, state int) {
	if g.place != nil {
		l.spare[g.state].Remove(g.place)
		g.place = nil
	}
	if g.state = state; state != guestBusy {
		g.place = l.spare[state].PushBack(g)
	}
}

// track is the http.Server's ConnState.
func (l *capped) track(nc net.Conn, state http.ConnState) {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // of TLS, or strict
		nc = t.NetConn()
	}
	g, ok := nc.(*guest)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateIdle:
		l.move(g, guestIdle)
	case http.StateActive, http.StateClosed, http.StateHijacked:
		l.move(g, guestBusy)
	case http.StateNew: // as it was accepted
	}
}

// stats are in the lane's terms: all connections are at net/http.
func (l *capped) stats() lane.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.counts
	s.Foreign = l.open
	return s
}

// Read reads, and tells a head that has begun from silence.
func (g *guest) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if n > 0 {
		g.of.mu.Lock()
		defer g.of.mu.Unlock()
		if g.place != nil && g.state != guestHeading {
			g.of.move(g, guestHeading)
		}
	}
	return n, err
}

// Close counts the connection out.
func (g *guest) Close() error {
	g.gone.Do(func() {
		g.of.mu.Lock()
		defer g.of.mu.Unlock()
		g.of.move(g, guestBusy)
		g.of.open--
	})
	return g.Conn.Close()
}

// CloseWrite ends our half; net/http uses it so that a last answer is not lost.
func (g *guest) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
