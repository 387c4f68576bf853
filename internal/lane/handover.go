package lane

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"curt/internal/connlimit"
)

// handover is the listener that an http.Server accepts from. A connection is always
// somebody's: give returns when net/http has taken it, or not at all.
type handover struct {
	conns chan net.Conn // unbuffered
	done  chan struct{} // closed by close
	once  sync.Once
}

func newHandover() *handover {
	return &handover{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept returns the next connection, or net.ErrClosed.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close stops the hand-over; connections that wait for it are closed by the lane.
func (h *handover) Close() error { h.close(); return nil }

// Addr names the lane: the real addresses are the lane's listeners'.
func (*handover) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: "lane"} }

func (h *handover) close() { h.once.Do(func() { close(h.done) }) }

// give offers the connection to net/http and reports whether it was taken. Before
// that it leaves the sweeper, so that nothing but net/http's own limits ends it.
func (c *conn) give(nc net.Conn) bool {
	c.progress = c.lane.gate.Progress(connlimit.Network(c.network.Load()))
	c.enter(handing)
	if c.surrender() != nil {
		return false // it was closed meanwhile
	}
	c.lane.stats.handed.Add(1) // first: whoever reads net/http's answer finds it counted
	select {
	case c.lane.handed.conns <- nc:
		return true
	case <-c.lane.handed.done:
		c.lane.stats.handed.Add(^uint64(0))
		return false
	}
}

// over wraps the connection with the bytes that the lane read of it.
func (c *conn) over(b []byte) net.Conn {
	h := &handed{replay: replay{Conn: c.nc, rest: append([]byte(nil), b...)}, lane: c.lane, away: c, tcp: c.tcp, peer: c.peer, trusted: c.trusted}
	if t, ok := c.nc.(*tls.Conn); ok {
		return &handedTLS{handed: h, tls: t}
	}
	return h
}

// countOut returns what counts the connection out when net/http closes it, the first
// time that it is called.
func (c *conn) countOut() func() { return sync.OnceFunc(func() { c.lane.conns.leave(c) }) }

// replay is a connection that gives back what was read of it.
type replay struct {
	net.Conn
	rest []byte // owned by whoever reads
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

// CloseWrite ends our half; net/http uses it so that a last answer is not lost.
func (r *replay) CloseWrite() error {
	if c, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// handedTLS is handed over TLS: net/http asks for the state, to set r.TLS.
type handedTLS struct {
	*handed
	tls *tls.Conn
}

// ConnectionState returns the state of the handshake that the lane did.
func (h *handedTLS) ConnectionState() tls.ConnectionState { return h.tls.ConnectionState() }

// connKey is the context key of a handed-over connection. It is the only way from a
// request to its connection that net/http has.
type connKey struct{}

// ConnContext is for the http.Server that accepts from Listener.
func (l *Lane) ConnContext(ctx context.Context, nc net.Conn) context.Context {
	if away := awayOf(nc); away != nil {
		ctx = connlimit.With(ctx, away.progress)
	}
	switch c := nc.(type) {
	case *handed:
		return context.WithValue(ctx, connKey{}, c)
	case *handedTLS:
		return context.WithValue(ctx, connKey{}, c.handed)
	}
	return ctx
}

// Handler tells handed-over connections when a request of theirs is answered, so that
// they know when they are between two. It is the outermost handler of that
// http.Server.
func (l *Lane) Handler(next http.Handler) http.Handler {
	next = l.gate.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(*handed)
		if ok {
			c.answered.Store(false)
		}
		next.ServeHTTP(w, r)
		if ok && r.ContentLength == 0 {
			c.answered.Store(true)
		}
	})
}
