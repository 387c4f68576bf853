package lane

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/connlimit"
	"curt/internal/lane/head"
	"curt/internal/lane/strict"
)

// This file is the life of a connection at net/http, from top to bottom: the hand-off, its reads
// and writes, its return to the lane, and its close.
//
// It counts against Config.MaxConns there, and is evicted in the same order as the lane's: its
// state is http with a request, of which progress knows whether it waits for the client, idle
// between two, and reading while a head of HTTP/1.1 comes. The lane has no time-outs for it: these
// are net/http's, and those of a body internal/connlimit's.

// handoffListener is what an http.Server accepts handed-off connections from. A connection
// always has an owner: handOff returns when net/http has taken it, or not at all.
type handoffListener struct {
	conns chan net.Conn // unbuffered
	done  chan struct{} // closed by close
	once  sync.Once
}

func newHandoffListener() *handoffListener {
	return &handoffListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept returns the next connection, or net.ErrClosed.
func (l *handoffListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends the hand-off; the lane closes connections that wait for it.
func (l *handoffListener) Close() error { l.close(); return nil }

// Addr names the lane: the real addresses are those of the lane's listeners.
func (*handoffListener) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: "lane"} }

func (l *handoffListener) close() { l.once.Do(func() { close(l.done) }) }

// handOff offers the connection to net/http and reports whether it was taken. Before
// that its time-outs end, so that only net/http's apply.
func (c *conn) handOff(nc net.Conn) bool {
	c.progress = c.lane.gate.Progress(connlimit.Network(c.network.Load()))
	c.enter(stateHTTP)
	if c.tcp.release() != nil {
		return false // it was closed concurrently
	}
	c.lane.stats.handedOff.Add(1) // first: a reader of net/http's answer finds it counted
	select {
	case c.lane.handoff.conns <- nc:
		return true
	case <-c.lane.handoff.done:
		c.lane.stats.handedOff.Add(^uint64(0))
		return false
	}
}

// httpConn is an HTTP/1.1 connection at net/http.
type httpConn struct {
	replay
	filter strict.Filter // guarded by reading
	lane   *Lane
	conn   *conn // as the lane knows it, and evicts it
	tcp    net.Conn
	peer   peer

	answered  atomic.Bool            // the last request, without a body, was, and no byte came since
	oneHead   bool                   // guarded by reading; the last bytes ended a head and held nothing else
	returning atomic.Pointer[[]byte] // the request that the lane continues with; nil = net/http continues

	reading   sync.Mutex   // held by the reader, so that lingering waits for net/http's
	closed    atomic.Bool  // Close was called
	readEnded atomic.Bool  // the client closed, or reading failed
	wrote     atomic.Int64 // when the last write succeeded, by the lane's clock
}

// newHTTPConn wraps the connection with the bytes that the lane read of it.
func (c *conn) newHTTPConn(b []byte) net.Conn {
	h := &httpConn{replay: replay{Conn: c.nc, rest: slices.Clone(b)}, lane: c.lane, conn: c, tcp: c.tcp.Conn, peer: c.peer}
	if t, ok := c.nc.(*tls.Conn); ok {
		return &httpsConn{httpConn: h, tls: t}
	}
	return h
}

// httpsConn is an httpConn over TLS: net/http asks for the state, to set r.TLS.
type httpsConn struct {
	*httpConn
	tls *tls.Conn
}

// ConnectionState returns the state of the handshake that the lane did.
func (h *httpsConn) ConnectionState() tls.ConnectionState { return h.tls.ConnectionState() }

// Read returns what the lane read, then what comes, as long as it is valid and no request that the
// lane answers.
func (h *httpConn) Read(p []byte) (int, error) {
	h.reading.Lock()
	defer h.reading.Unlock()
	if h.closed.Load() {
		return 0, net.ErrClosed
	}
	if h.returning.Load() != nil {
		return 0, io.EOF
	}
	if h.filter.Cut() {
		return h.filter.Read(p)
	}
	h.conn.progress.Reads()
	n, err := h.replay.Read(p)
	h.conn.progress.HasRead()
	if n > 0 {
		h.beginHead()
		if n = h.filter.Pass(p[:n]); h.filter.Cut() {
			h.oneHead = false
			if n > 0 {
				return n, nil
			}
			return h.filter.Read(p)
		}
	}
	if n > 0 && h.canReturnToLane(p[:n]) {
		return 0, io.EOF
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // net/http interrupts its reads by deadlines
		h.readEnded.Store(true)
	}
	return n, err
}

// beginHead notes that bytes came: between two requests they begin a head. Only net/http's
// goroutine of the connection reads then, and it is the one that calls ConnState.
func (h *httpConn) beginHead() {
	if s, _ := h.conn.status.get(); s == stateIdle {
		h.conn.enter(stateReading)
	}
}

// Write writes, and notes when.
func (h *httpConn) Write(p []byte) (int, error) {
	h.conn.progress.Writes()
	n, err := h.Conn.Write(p)
	h.conn.progress.Resume()
	if err == nil {
		h.wrote.Store(h.lane.clock.now())
	}
	return n, err
}

// The return from net/http. A proxy that pools connections would otherwise keep one
// there forever because of one health check, and a redirect costs three times as much
// there. So the bytes between two requests are parsed: where they are a plain request, net/http
// reads the end of the stream, and the lane continues with the request when net/http closes. The
// client notices nothing.
//
// net/http may have bytes in its own buffer, which the lane cannot see. It has none when the last
// bytes that it got ended a head and held nothing else (oneHead), the request was answered and
// had no body (answered), and nothing was read since. A client that pipelines, or sends a body,
// stays until a request comes alone; so does, for one request more, a client so quick that net/http
// reads its next byte while it checks whether the client left.

// canReturnToLane parses bytes that were just read, and keeps them when they are a plain request.
// The caller holds reading.
func (h *httpConn) canReturnToLane(b []byte) bool {
	answered := h.answered.Swap(false)
	between := h.oneHead && answered
	h.oneHead = head.EndsOnce(b)
	if !between || !h.oneHead || h.lane.draining.Load() {
		return false
	}
	shard := h.lane.count.Add(1)
	x := h.lane.pool.get(shard)
	defer h.lane.pool.put(shard, x)
	if x.head.Parse(b, h.lane.cfg.Pages) != head.Plain || x.head.Size < len(b) {
		return false
	}
	b = slices.Clone(b)
	h.returning.Store(&b)
	return true
}

// resumeInLane continues the connection in the lane, with a request that net/http did not see.
func (h *httpConn) resumeInLane(b []byte) error {
	c := &conn{lane: h.lane, tcp: socket{Conn: h.tcp}, nc: h.Conn, peer: h.peer, input: input{pending: b}, returned: true, shard: h.lane.count.Add(1)}
	c.enter(stateNew)
	if !h.lane.conns.resume(h.conn, c) {
		return h.Conn.Close()
	}
	h.lane.stats.returned.Add(1)
	err := h.tcp.SetDeadline(time.Time{}) // net/http's; an error means that it is closed
	go c.serve()
	return err
}

// Close ends the connection for net/http. It never waits: net/http
// calls it under its lock too. A connection whose last answer may still be on its way lingers in
// the lane.
func (h *httpConn) Close() error {
	if h.closed.Swap(true) {
		return net.ErrClosed
	}
	if b := h.returning.Load(); b != nil {
		return h.resumeInLane(*b)
	}
	justWrote := h.lane.clock.now()-h.wrote.Load() <= lingerTimeout.Milliseconds()
	c := &conn{lane: h.lane, tcp: socket{Conn: h.tcp}, nc: h.Conn}
	c.enter(stateLingering)
	if !h.lane.conns.removeHTTP(h.conn, c, justWrote && !h.readEnded.Load()) {
		return h.Conn.Close()
	}
	err := h.tcp.SetDeadline(time.Unix(1, 0)) // interrupts reads and writes there
	go c.lingerAfterHTTP(h)
	return err
}

// ConnContext is for the http.Server that accepts from Listener.
func (l *Lane) ConnContext(ctx context.Context, nc net.Conn) context.Context {
	if c := connOf(nc); c != nil {
		ctx = connlimit.With(ctx, c.progress)
	}
	switch h := nc.(type) {
	case *httpConn:
		return context.WithValue(ctx, connKey{}, h)
	case *httpsConn:
		return context.WithValue(ctx, connKey{}, h.httpConn)
	}
	return ctx
}

// connKey is the context key of an httpConn. It is the only way from a
// request to its connection that net/http has.
type connKey struct{}

// Handler notes when a request of an httpConn is answered, so that it can return to the lane. It is
// the outermost handler of that http.Server.
func (l *Lane) Handler(next http.Handler) http.Handler {
	next = l.gate.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, ok := r.Context().Value(connKey{}).(*httpConn)
		if ok {
			h.answered.Store(false)
		}
		next.ServeHTTP(w, r)
		if ok && r.ContentLength == 0 {
			h.answered.Store(true)
		}
	})
}

// ConnState is for the http.Server that accepts from Listener. Without it connections
// at net/http are never evicted.
func (l *Lane) ConnState(nc net.Conn, s http.ConnState) {
	c := connOf(nc)
	if c == nil {
		return
	}
	switch s {
	case http.StateIdle:
		c.progress.Over()
		c.enter(stateIdle)
	case http.StateActive:
		c.progress.Begin()
		c.enter(stateHTTP)
	case http.StateClosed, http.StateHijacked:
		c.progress.Over()
	case http.StateNew: // handOff entered stateHTTP
	}
}

// connOf returns what the lane knows of a connection at net/http, or nil.
func connOf(nc net.Conn) *conn {
	switch h := nc.(type) {
	case *httpConn:
		return h.conn
	case *httpsConn:
		return h.conn
	case *tls.Conn: // HTTP/2
		if t, ok := h.NetConn().(*tlsTransport); ok {
			return t.conn
		}
	}
	return nil
}

// replay is a connection that returns again what was read of it.
type replay struct {
	net.Conn
	rest []byte // owned by the reader
}

// Read returns what was read before, then what comes.
func (r *replay) Read(p []byte) (int, error) {
	if len(r.rest) == 0 || len(p) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.rest)
	if r.rest = r.rest[n:]; len(r.rest) == 0 {
		r.rest = nil
	}
	return n, nil
}

// CloseWrite closes our half; net/http uses it so that a last answer is not lost.
func (r *replay) CloseWrite() error {
	if c, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}
