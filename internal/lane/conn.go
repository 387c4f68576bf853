package lane

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/clicks"
	"curt/internal/connlimit"
	"curt/internal/redirect"
)

// conn is one connection. Its goroutine owns all that is not marked otherwise.
type conn struct {
	lane *Lane
	tcp  net.Conn // what was accepted; closing it ends everything above
	nc   net.Conn // what is read and written: tcp, or TLS on it
	raw  *rawConn // another way to read tcp; nil = nc is read

	peer    netip.Addr // the client's, or a proxy's
	trusted bool       // whether peer is a proxy that is believed
	shard   uint32     // of Lane.spare; set once

	own    []byte // a head that came in pieces; nil or empty between heads
	judged bool   // own was parsed, and is incomplete but not wrong
	looked int    // up to here own holds no end of a head

	// A client that stays asks for the same host: this saves looking it up.
	host  []byte
	place redirect.Place

	state atomic.Uint64 // phase and since when; read by the sweeper
	gone  atomic.Bool   // cut off; set by whoever closes it first
	in    *set          // guarded by connections.mu: those among whom it is; nil = none
	slot  int           // guarded by connections.mu: its place there

	network  atomic.Uint64       // the peer's connlimit.Network
	progress *connlimit.Progress // of its requests at net/http; set before it is in phase handing
	evicted  bool                // guarded by connections.mu; closed to make room
	born     int64               // when it was accepted, in connlimit's unit: the lane's clock is coarse, and who comes is younger than who came; set once

	waking        sync.Mutex // guards the read deadline, which only wakes
	asleepForGood bool       // guarded by waking; nobody may wake it any more

	greeted bool // it was at net/http; set before run
	lingers bool // the last answer's client did not ask for the end
}

// scratch is what handling one request needs, and an idle connection does not.
type scratch struct {
	in      [4 << 10]byte // twice what browsers send
	out     []byte        // the answer
	sent    int           // bytes of out that are written
	closing bool          // the answer says Connection: close
	outcome clicks.Outcome
	head    head
	raw     clicks.Raw
	views   []string // of head.forwarded
	verdict verdict  // on head
	ready   bool     // out is the prepared answer
}

func newConn(l *Lane, nc net.Conn) *conn {
	c := &conn{lane: l, tcp: nc, nc: nc, shard: l.count.Add(1), born: l.clock.precise()}
	c.setPeer(nc.RemoteAddr())
	c.enter(greeting)
	return c
}

func (c *conn) setPeer(a net.Addr) {
	if tcp, ok := a.(*net.TCPAddr); ok {
		c.peer = tcp.AddrPort().Addr().Unmap().WithZone("")
	} else {
		c.peer = netip.Addr{}
	}
	c.network.Store(uint64(connlimit.NetworkOf(c.peer)))
	c.trusted = c.peer.IsValid() && c.lane.cfg.Clients.Trusts(c.peer)
}

const phaseShift = 56

// enter begins a phase. The clock is coarse, so a connection with much to do changes
// nothing most of the time.
func (c *conn) enter(p phase) {
	if state := uint64(p)<<phaseShift | uint64(c.lane.clock.now()); c.state.Load() != state {
		c.state.Store(state)
	}
}

func (c *conn) phase() (p phase, since int64) {
	return phaseOf(c.state.Load())
}

func phaseOf(state uint64) (p phase, since int64) {
	return phase(state >> phaseShift), int64(state & (1<<phaseShift - 1))
}

// wake makes a waiting read return, to look for the end of the stream.
func (c *conn) wake() {
	c.waking.Lock()
	defer c.waking.Unlock()
	if !c.asleepForGood {
		_ = c.tcp.SetReadDeadline(time.Unix(1, 0)) // an error means that it is closed
	}
}

// calm lets reads wait again.
func (c *conn) calm() error {
	c.waking.Lock()
	defer c.waking.Unlock()
	return c.tcp.SetReadDeadline(time.Time{})
}

// surrender is calm for good: net/http's deadlines must be its own.
func (c *conn) surrender() error {
	c.waking.Lock()
	defer c.waking.Unlock()
	c.asleepForGood = true
	return c.tcp.SetReadDeadline(time.Time{})
}

// late cuts the connection off and reports whether it was the first to do so.
func (c *conn) late() bool {
	if c.gone.Swap(true) {
		return false
	}
	_ = c.tcp.Close() // its goroutine learns by it
	return true
}

// cut is late for those who do not ask.
func (c *conn) cut() { c.late() }

// run is the life of the connection.
func (c *conn) run() {
	kept := true // by the lane; false = net/http has it
	defer func() {
		if fault := recover(); fault != nil {
			c.lane.stats.panics.Add(1)
			c.lane.cfg.Log.ErrorContext(c.lane.base, "panic in the lane", slog.Any("err", fault), slog.String("stack", string(debug.Stack())))
		}
		if kept {
			c.gone.Store(true)
			_ = c.nc.Close()
		}
		c.own, c.raw = nil, nil // c may stay, as what stands for it at net/http
		c.lane.conns.remove(c, !kept)
	}()
	if !c.greeted {
		early, ok := c.greet()
		if !ok {
			return
		}
		if early != nil { // h2
			kept = !c.give(early)
			return
		}
		c.enter(fresh)
	}
	c.raw = newRawConn(c)
	kept = !c.serve()
	if c.lingers {
		c.linger()
	}
}

// serve answers requests until the connection ends, or is given away: then it
// reports true.
func (c *conn) serve() (given bool) {
	s := c.lane.spare.get(c.shard)
	b, err := c.own, error(nil) // what came behind a PROXY header, or what net/http left
	if len(b) > 0 {
		c.look(s, b)
	}
	for stays := true; stays; {
		if len(b) > 0 {
			stays, given = c.handle(s, b)
		}
		c.lane.spare.put(c.shard, s)
		if !stays {
			break
		}
		if b, s, err = c.next(); err != nil {
			c.lane.spare.put(c.shard, s)
			if errors.Is(err, io.EOF) && len(c.own) > 0 {
				given = c.give(c.over(c.own)) // net/http answers what was cut off
			}
			break
		}
	}
	return given
}

// next waits for bytes and returns those of a head so far, looked at.
func (c *conn) next() ([]byte, *scratch, error) {
	if c.raw != nil {
		return c.raw.next(c)
	}
	n, err := c.nc.Read(c.room())
	if n == 0 && err != nil {
		return nil, nil, err
	}
	c.own = c.own[:len(c.own)+n]
	s := c.lane.spare.get(c.shard)
	c.look(s, c.own)
	return c.own, s, nil
}

// look judges the bytes of a head, and finds the prepared answer to it.
func (c *conn) look(s *scratch, b []byte) {
	s.verdict = c.judge(s, b)
	s.ready = s.verdict == express && c.hit(s)
}

// handle does what the bytes of a head ask for, after look. stays reports whether
// the lane reads on, given whether net/http has the connection.
func (c *conn) handle(s *scratch, b []byte) (stays, given bool) {
	switch s.verdict {
	case incomplete:
		if len(b) >= maxHead {
			c.refuse(tooLarge)
			return false, false
		}
		c.keep(b)
		return true, false
	case bad:
		c.refuse(badRequest)
		return false, false
	case foreign:
		return false, c.give(c.over(b))
	case express:
	}
	if !s.ready {
		c.resolve(s)
	}
	sent := c.send(s)
	c.lingers = sent && s.closing && !s.head.closing
	return sent && !s.closing, false
}

// judge parses a head, but not again for each byte of one that comes in pieces.
func (c *conn) judge(s *scratch, b []byte) verdict {
	if c.judged && !endsHead(b, c.looked) {
		c.looked = len(b)
		return incomplete
	}
	v := s.head.parse(b, c.lane.cfg.Pages)
	switch {
	case v == incomplete:
		c.judged = s.head.lined
		c.looked = len(b)
	case v == express && s.head.size < len(b):
		v = foreign // pipelined
	}
	return v
}

// endsHead reports whether an empty line ends in b behind the first looked bytes.
func endsHead(b []byte, looked int) bool {
	for i := max(looked, 1); i < len(b); i++ {
		if b[i] == '\n' && (b[i-1] == '\n' || i > 1 && b[i-1] == '\r' && b[i-2] == '\n') {
			return true
		}
	}
	return false
}

const firstRoom = 1 << 10

// room returns where to read to: behind own, which grows up to maxHead.
func (c *conn) room() []byte {
	if n := len(c.own); n == cap(c.own) {
		grown := make([]byte, n, min(max(2*n, firstRoom), maxHead))
		copy(grown, c.own)
		c.own = grown
	}
	return c.own[len(c.own):cap(c.own)]
}

// keep holds on to the beginning of a head.
func (c *conn) keep(b []byte) {
	if p, _ := c.phase(); p != heading {
		c.enter(heading)
	}
	if len(c.own) == 0 {
		for cap(c.own) < len(b) {
			c.own = make([]byte, 0, min(max(2*cap(c.own), firstRoom), maxHead))
		}
		c.own = append(c.own, b...)
	}
}

// done follows an answer: what its head needed is let go.
func (c *conn) done() {
	if cap(c.own) > firstRoom {
		c.own = nil
	}
	c.own, c.judged, c.looked = c.own[:0], false, 0
}

// send writes the rest of the answer, then records the click. It reports whether the
// answer left this process.
func (c *conn) send(s *scratch) bool {
	if s.sent < len(s.out) {
		c.enter(writing)
		if _, err := c.nc.Write(s.out[s.sent:]); err != nil {
			return false
		}
	}
	c.record(s)
	c.done()
	c.enter(idle)
	return true
}

// record tells about an answered request. What net/http's way counts as no click
// has no outcome.
func (c *conn) record(s *scratch) {
	if s.outcome == 0 {
		return
	}
	h := &s.head
	s.raw = clicks.Raw{
		Time: time.Now().UnixMilli(), Domain: c.place.Bytes(), Code: h.code, Outcome: s.outcome, Flags: h.flags,
		Addr: c.client(s), UserAgent: h.agent, Referrer: h.referrer, Language: h.language, Query: h.query,
	}
	c.lane.cfg.Recorder.Record(&s.raw)
}

// client returns the address of the client.
func (c *conn) client(s *scratch) netip.Addr {
	if !c.trusted || len(s.head.forwarded) == 0 {
		return c.peer
	}
	s.views = s.views[:0]
	for _, line := range s.head.forwarded {
		s.views = append(s.views, view(line))
	}
	return c.lane.cfg.Clients.Of(c.peer, s.views)
}
