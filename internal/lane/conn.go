package lane

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"curt/internal/connlimit"
	"curt/internal/hosts"
	"curt/internal/lane/head"
	"curt/internal/redirect"
)

// This file is the life of a connection from top to bottom: accepted, read, answered, read again,
// and handed off to net/http or closed.

// state is what a connection does. It decides about time-outs (timeouts.go) and eviction
// (connections.go). Every transition is in this list, and the diagram of doc.go shows them. In net/http's
// words handshake and new are StateNew, idle and unread StateIdle, http StateHijacked, the others StateActive.
type state uint8

const (
	stateHandshake state = iota // PROXY header and TLS. Next: new; http for HTTP/2
	stateNew                    // no byte of a request yet. Next: reading, resolving, writing, idle, http
	stateReading                // a head has begun. Next: resolving, writing, idle, http
	stateResolving              // the answer is not prepared. Next: writing
	stateWriting                // the answer is. Next: idle; lingering after the last answer
	stateIdle                   // between requests. Next: unread, and those of new
	stateUnread                 // idle, and an end of the stream may be unread. Next: idle, and those of new
	stateHTTP                   // at net/http with a request, or about to be. There also idle and reading. Next: new, lingering
	stateLingering              // had its last answer. Next: closed
)

// conn is one connection: its state, and what it does in each. Its goroutine owns all that is not
// marked otherwise.
type conn struct {
	lane *Lane
	tcp  socket   // as accepted
	nc   net.Conn // what is read and written: tcp, or TLS on it
	raw  *rawConn // reads tcp without nc; nil = nc is read

	peer  peer
	input input
	host  lastHost

	status   status              // read by the time-outs and by eviction
	network  atomic.Uint64       // the peer's connlimit.Network
	progress *connlimit.Progress // of its requests at net/http; set before stateHTTP
	accepted int64               // when, in connlimit's unit, exactly: the clock is too coarse for an order; set once
	in       *set                // guarded by connections.mu: the set that holds it; nil = none
	index    int                 // guarded by connections.mu: in that set
	evicted  bool                // guarded by connections.mu

	returned bool   // from net/http, without a handshake; set before serve
	lingers  bool   // the last answer ended the connection, and the client did not ask for that
	shard    uint32 // of Lane.pool; set once
}

const stateShift = 56

// status is a state and since when, in one word.
type status struct{ atomic.Uint64 }

func (s *status) get() (is state, since int64) { return stateOf(s.Load()) }

// busy reports whether the previous request was a moment ago.
func (s *status) busy(now int64) bool {
	is, since := s.get()
	return (is == stateIdle || is == stateUnread) && now-since <= tick.Milliseconds()
}

func stateOf(status uint64) (s state, since int64) {
	return state(status >> stateShift), int64(status & (1<<stateShift - 1))
}

// enter begins a state. The clock is coarse, so a busy connection changes nothing most of the time.
func (c *conn) enter(s state) {
	if status := uint64(s)<<stateShift | uint64(c.lane.clock.now()); c.status.Load() != status {
		c.status.Store(status)
	}
}

// Serve accepts connections until the listener is closed, and returns its error. It
// may be called for several listeners.
func (l *Lane) Serve(listener net.Listener) error {
	var pause time.Duration
	for {
		nc, err := listener.Accept()
		if err == nil {
			pause = 0
			l.serve(nc)
			continue
		}
		if !temporary(err) {
			return err
		}
		// A busy loop would take the processor from those who could close descriptors.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		l.stats.refused.Add(1)
		time.Sleep(pause)
	}
}

// temporary reports whether Accept failed for want of descriptors or memory, or
// because the client had left: errors after which the next may succeed.
func temporary(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// serve starts the life of a connection, if the limit admits it.
func (l *Lane) serve(nc net.Conn) {
	c := &conn{lane: l, tcp: socket{Conn: nc}, nc: nc, shard: l.count.Add(1), accepted: l.clock.precise()}
	c.setPeer(nc.RemoteAddr())
	c.enter(stateHandshake)
	if !l.conns.add(c, l.cfg.MaxConns, &l.stats) {
		_ = nc.Close()
		return
	}
	l.stats.accepted.Add(1)
	go c.serve()
}

func (c *conn) setPeer(a net.Addr) {
	c.peer = peerOf(a, c.lane.cfg.Clients)
	c.network.Store(uint64(connlimit.NetworkOf(c.peer.addr)))
}

// serve is the life of a connection.
func (c *conn) serve() {
	handedOff := false // net/http has it
	defer func() { c.end(recover(), handedOff) }()
	if !c.returned {
		http2, ok := c.handshake()
		if !ok {
			return
		}
		if http2 != nil {
			handedOff = c.handOff(http2)
			return
		}
		c.enter(stateNew)
	}
	c.raw = newRawConn(c)
	handedOff = c.serveRequests()
	if c.lingers {
		c.linger()
	}
}

// end closes a connection that net/http does not have. fault is that of a panic.
func (c *conn) end(fault any, handedOff bool) {
	if fault != nil {
		c.lane.stats.panics.Add(1)
		c.lane.cfg.Log.ErrorContext(c.lane.base, "panic in the lane", slog.Any("err", fault), slog.String("stack", string(debug.Stack())))
	}
	if !handedOff {
		c.tcp.closed.Store(true)
		_ = c.nc.Close()
	}
	c.input.pending, c.raw = nil, nil // c may stay, as what the lane knows of a connection at net/http
	c.lane.conns.remove(c, handedOff)
}

// serveRequests answers requests until the connection ends, and reports whether that is because
// net/http has it.
func (c *conn) serveRequests() (handedOff bool) {
	x := c.lane.pool.get(c.shard)
	b, err := c.input.pending, error(nil) // read after a PROXY header, or by net/http
	if len(b) > 0 {
		c.parse(x, b)
	}
	for next := readMore; ; {
		if len(b) > 0 {
			next = c.handle(x, b)
		}
		c.lane.pool.put(c.shard, x)
		if next != readMore {
			return next == atHTTP
		}
		if b, x, err = c.read(); err != nil {
			c.lane.pool.put(c.shard, x)
			// net/http answers a head that was cut off by the end of the stream.
			return errors.Is(err, io.EOF) && len(c.input.pending) > 0 && c.handOff(c.newHTTPConn(c.input.pending))
		}
	}
}

// step is how a connection continues after handle.
type step uint8

const (
	readMore step = iota
	ended
	atHTTP // net/http has the connection
)

// handle does what the parsed bytes of a head ask for.
func (c *conn) handle(x *exchange, b []byte) step {
	switch x.verdict {
	case head.Incomplete:
		if len(b) >= head.MaxSize {
			c.refuse(headerTooLarge)
			return ended
		}
		if s, _ := c.status.get(); s != stateReading {
			c.enter(stateReading)
		}
		c.input.keep(b)
		return readMore
	case head.Bad:
		c.refuse(badRequest)
		return ended
	case head.Other:
		if c.handOff(c.newHTTPConn(b)) {
			return atHTTP
		}
		return ended
	case head.Plain:
	}
	if !x.prepared {
		c.resolve(x)
	}
	sent := c.write(x)
	c.lingers = sent && x.close && !x.head.Close
	if !sent || x.close {
		return ended
	}
	return readMore
}

// read waits for bytes and returns those of a head so far, parsed. With a rawConn it returns after
// the first that is not simply answered.
func (c *conn) read() ([]byte, *exchange, error) {
	if c.raw != nil {
		return c.raw.read(c)
	}
	n, err := c.nc.Read(c.input.room())
	if n == 0 && err != nil {
		return nil, nil, err
	}
	b := c.input.extend(n)
	x := c.lane.pool.get(c.shard)
	c.parse(x, b)
	return b, x, nil
}

// rawConn reads a connection without TLS: the goroutine stays inside of one
// syscall.RawConn.Read, which calls answerHits whenever there may be bytes. Compared
// with net.Conn.Read and Write it saves the runtime's bookkeeping of each, and an
// idle connection has no buffer waiting.
//
// The trap: the runtime's poller is edge-triggered, so a wait must follow a read that
// returned EAGAIN. A short read shows that all bytes were read, but an end of stream
// that came with them makes no second event. Yet a read that finds nothing, once for
// each request, is a tenth of what a redirect costs. So a busy connection waits
// without it, as unread, and when it turns quiet the time-outs interrupt it, once,
// to look for the end. The price: a client that closes its half together with the
// second or a later request in a row sees our end up to three ticks later.
type rawConn struct {
	syscall.RawConn
	ready func(fd uintptr) (done bool) // c.answerHits, created once

	// What answerHits left for handle.
	bytes []byte
	x     *exchange
	err   error
}

// newRawConn returns nil when the connection cannot be read so.
func newRawConn(c *conn) *rawConn {
	tcp, ok := c.tcp.Conn.(*net.TCPConn)
	if !ok || !canRead || c.lane.cfg.TLS != nil {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return &rawConn{RawConn: raw, ready: c.answerHits}
}

// read answers hits, and returns the first bytes that are anything else.
func (r *rawConn) read(c *conn) ([]byte, *exchange, error) {
	for {
		err := r.Read(r.ready)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || c.tcp.clearDeadline() != nil {
			return nil, nil, err
		}
	}
	b, x, err := r.bytes, r.x, r.err
	r.bytes, r.x, r.err = nil, nil, nil
	return b, x, err
}

// answerHits answers hits until there is nothing to read. It reports true when there is something
// else, which it leaves in c.raw.
func (c *conn) answerHits(fd uintptr) (done bool) {
	x := c.lane.pool.get(c.shard)
	for {
		room := x.in[:]
		if len(c.input.pending) > 0 {
			room = c.input.room()
		}
		n, errno := rawRead(fd, room)
		switch {
		case errno == syscall.EAGAIN:
			if s, _ := c.status.get(); s == stateUnread {
				c.enter(stateIdle)
			}
			c.lane.pool.put(c.shard, x)
			return false
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			c.raw.x, c.raw.err = x, errno
			return true
		case n == 0:
			c.raw.x, c.raw.err = x, io.EOF
			return true
		}
		b := room[:n]
		if len(c.input.pending) > 0 {
			b = c.input.extend(n)
		}
		c.parse(x, b)
		if !x.prepared || !c.writeHit(x, fd) {
			c.raw.bytes, c.raw.x = b, x
			return true
		}
		if n < len(room) && c.status.busy(c.lane.clock.now()) {
			c.enter(stateUnread)
			c.lane.pool.put(c.shard, x)
			return false
		}
		c.enter(stateIdle)
	}
}

// parse reads the bytes of a head, and finds the prepared answer to it.
func (c *conn) parse(x *exchange, b []byte) {
	x.verdict = c.input.parse(&x.head, b, c.lane.cfg.Pages)
	if x.verdict == head.Plain && c.lane.cfg.CountryHeader != "" {
		x.country = c.peer.country(b, c.lane.cfg.CountryHeader)
	}
	x.prepared = x.verdict == head.Plain && c.hit(x)
}

// hit puts the prepared answer into x.out, if L1 has one that is valid now.
func (c *conn) hit(x *exchange) bool {
	h := &x.head
	c.host.find(c.lane.cfg.Visitors.Hosts(), h.Host)
	if !c.host.match.Served() {
		return false
	}
	e := c.lane.cfg.Cache.Hit(c.host.match.Domain(), h.Code)
	if e == nil || e.Prepared.Head == "" || !valid(&e.Prepared) {
		return false
	}
	if !c.host.match.Configured() && redirect.LeadsBack(e.Target.Destination, head.View(h.Host)) {
		return false
	}
	if c.lane.cfg.Limits != nil && !c.allowed(x) {
		return false
	}
	x.prepare(&e.Prepared, c.lane.clock.dateValue(), c.lane.draining.Load())
	return true
}

// allowed spends a redirect where those have a bound. One that is refused is resolved, which decides
// it and writes the answer.
func (c *conn) allowed(x *exchange) bool {
	wait, _ := c.lane.cfg.Limits.Take(time.Now(), c.peer.client(c.lane.cfg.Clients, x), c.host.match.Domain(), head.View(x.head.Code))
	return wait == 0
}

// lastHost is the last Host of a connection and its place in a table of hosts: most clients keep both.
type lastHost struct {
	name  []byte
	table *hosts.Table
	match hosts.Match
}

// find sets match for the Host of a request.
func (l *lastHost) find(table *hosts.Table, name []byte) {
	if l.name == nil || l.table != table || !bytes.Equal(name, l.name) {
		l.table, l.match = table, table.Find(string(name))
		l.name = append(l.name[:0], name...)
	}
}

// writeHit writes a prepared answer and reports whether the connection simply continues.
func (c *conn) writeHit(x *exchange, fd uintptr) bool {
	if !x.writeRaw(fd) || x.close {
		return false // write does the rest, and meets an error again
	}
	c.answered(x)
	return true
}

// write writes the rest of the answer, then records the click. It reports whether the
// answer left this process.
func (c *conn) write(x *exchange) bool {
	if x.sent < len(x.out) {
		c.enter(stateWriting)
		if _, err := c.nc.Write(x.out[x.sent:]); err != nil {
			return false
		}
	}
	c.answered(x)
	c.enter(stateIdle)
	return true
}

// answered records the click of a request, if it is one, and frees its head.
func (c *conn) answered(x *exchange) {
	if x.outcome != 0 {
		x.record(c.lane.cfg.Recorder, c.host.match.Bytes(), c.peer.client(c.lane.cfg.Clients, x))
	}
	c.input.drop()
}
