package connlimit

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/clientaddr"
)

// Listener bounds the connections of a listener that net/http serves alone, as the lane
// bounds its own.
type Listener struct {
	net.Listener
	limit int
	began time.Time
	gate  *Gate

	mu     sync.Mutex
	open   []*guest       // guarded by mu; accepted, not yet closed; guest.slot is the index
	going  int            // guarded by mu; of open, those that were evicted
	picker Picker[*guest] // guarded by mu
	counts Stats          // guarded by mu; without Open
}

// Stats are counters since the start.
type Stats struct {
	Open     int    // connections
	Accepted uint64 // connections
	Refused  uint64 // connections for which nobody could go
	Evicted  uint64 // closed to make room
}

// NewListener returns l with room for so many connections.
func NewListener(l net.Listener, limit int, clients clientaddr.Rule) *Listener {
	b := &Listener{Listener: l, limit: max(limit, 1), began: time.Now()}
	b.gate = NewGate(b.limit, clients, b.now, b.crowded)
	return b
}

// now is in microseconds.
func (l *Listener) now() int64 { return time.Since(l.began).Microseconds() }

// Guard has the server tell what its connections do. It must be called before Serve, and
// after everything else about the server was set.
func (l *Listener) Guard(s *http.Server) {
	s.Handler = l.gate.Handler(s.Handler)
	connState, connContext := s.ConnState, s.ConnContext
	s.ConnState = func(nc net.Conn, state http.ConnState) {
		l.track(nc, state)
		if connState != nil {
			connState(nc, state)
		}
	}
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		if connContext != nil {
			ctx = connContext(ctx, nc)
		}
		if g := guestOf(nc); g != nil {
			return With(ctx, g.progress)
		}
		return ctx
	}
}

// Accept returns the next connection that there is room for.
func (l *Listener) Accept() (net.Conn, error) {
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
func (l *Listener) admit(nc net.Conn) *guest {
	g := &guest{Conn: nc, of: l, progress: l.gate.Progress(networkOf(nc))}
	g.enter(guestFresh)
	l.mu.Lock()
	var leave []*guest
	full := len(l.open)-l.going >= l.limit
	if full {
		leave = l.pick(Batch(l.limit), false)
	}
	if full && len(leave) == 0 {
		l.counts.Refused++
		l.mu.Unlock()
		return nil
	}
	g.slot = len(l.open)
	l.open = append(l.open, g)
	l.counts.Accepted++
	l.mu.Unlock()
	cut(leave)
	return g
}

// crowded closes connections whose requests take too much room at net/http.
func (l *Listener) crowded() {
	l.mu.Lock()
	var leave []*guest
	if n := l.gate.Excess() - l.going; n > 0 {
		leave = l.pick(n+Batch(l.limit), true)
	}
	l.mu.Unlock()
	cut(leave)
}

// pick marks those who go; mu is held. requests asks for unfinished requests alone.
func (l *Listener) pick(n int, requests bool) []*guest {
	for _, g := range l.open {
		if c := g.candidate(); !g.evicted && (!requests || c.Kind == Unfinished && g.busy()) {
			l.picker.Add(c)
		}
	}
	leave := l.picker.Pick(n, l.limit)
	for _, g := range leave {
		g.evicted = true
	}
	l.going += len(leave)
	l.counts.Evicted += uint64(len(leave))
	return leave
}

// cut closes connections. They are counted out when net/http has noticed.
func cut(all []*guest) {
	for _, g := range all {
		_ = g.Conn.Close()
	}
}

// Stats returns the counters.
func (l *Listener) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.counts
	s.Open = len(l.open)
	return s
}

// The states of a guest.
const (
	guestFresh   uint64 = iota // silent so far
	guestHeading               // bytes came, and no whole head yet
	guestIdle                  // between two requests
	guestBusy                  // with a request; its progress says who is to act
)

const stateShift = 56

// guest is an open connection of a Listener.
type guest struct {
	net.Conn
	of       *Listener
	progress *Progress
	state    atomic.Uint64 // what it does and since when
	slot     int           // guarded by of.mu
	evicted  bool          // guarded by of.mu
	gone     sync.Once     // counts it out

	multiplexed atomic.Bool // HTTP/2: what comes between two requests may be no head
}

func (g *guest) enter(state uint64) {
	g.state.Store(state<<stateShift | uint64(g.of.now()))
}

func (g *guest) busy() bool { return g.state.Load()>>stateShift == guestBusy }

func (g *guest) candidate() Candidate[*guest] {
	state := g.state.Load()
	c := Candidate[*guest]{Conn: g, Kind: Unfinished, Since: int64(state & (1<<stateShift - 1)), Network: g.progress.Network()}
	switch state >> stateShift {
	case guestIdle:
		c.Kind = Idle
	case guestBusy:
		var owes bool
		if c.Since, c.Weight, owes = g.progress.Owes(); !owes {
			c.Kind = Working
		}
	}
	return c
}

func guestOf(nc net.Conn) *guest {
	for { // below TLS, and what looks at requests
		switch c := nc.(type) {
		case *guest:
			return c
		case interface{ NetConn() net.Conn }:
			nc = c.NetConn()
		default:
			return nil
		}
	}
}

// track is the http.Server's ConnState.
func (l *Listener) track(nc net.Conn, state http.ConnState) {
	g := guestOf(nc)
	if g == nil {
		return
	}
	switch state {
	case http.StateIdle:
		if t, ok := nc.(interface{ ConnectionState() tls.ConnectionState }); ok && t.ConnectionState().NegotiatedProtocol == "h2" {
			g.multiplexed.Store(true)
		}
		g.progress.Over()
		g.enter(guestIdle)
	case http.StateActive:
		g.progress.Begin()
		g.enter(guestBusy)
	case http.StateClosed, http.StateHijacked:
		g.progress.Over()
	case http.StateNew: // as it was accepted
	}
}

// Read reads, and tells a head that has begun from silence.
func (g *guest) Read(p []byte) (int, error) {
	g.progress.Reads()
	n, err := g.Conn.Read(p)
	g.progress.HasRead()
	if n > 0 && !g.multiplexed.Load() {
		switch g.state.Load() >> stateShift {
		case guestFresh:
			g.progress.name(networkOf(g.Conn)) // a PROXY header may have come
			g.enter(guestHeading)
		case guestIdle:
			g.enter(guestHeading)
		}
	}
	return n, err
}

// Write waits for the client.
func (g *guest) Write(p []byte) (int, error) {
	g.progress.Writes()
	defer g.progress.Resume()
	return g.Conn.Write(p)
}

// Close counts the connection out.
func (g *guest) Close() error {
	g.gone.Do(func() { g.of.leave(g) })
	return g.Conn.Close()
}

func (l *Listener) leave(g *guest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.open) - 1
	l.open[g.slot], l.open[last].slot = l.open[last], g.slot
	l.open[last] = nil
	l.open = l.open[:last]
	if g.evicted {
		l.going--
	}
}

// CloseWrite ends our half; net/http uses it so that a last answer is not lost.
func (g *guest) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
