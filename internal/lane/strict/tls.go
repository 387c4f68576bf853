package strict

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// handshakeTimeout bounds a handshake.
const handshakeTimeout = 10 * time.Second

// TLSListener returns a listener that speaks TLS and filters its connections of HTTP/1.x; those of
// HTTP/2 are *tls.Conn, as net/http expects. The first Accept begins to accept from l, and Close
// ends that.
func TLSListener(l net.Listener, config *tls.Config) net.Listener {
	s := &tlsListener{Listener: l, config: config, accepted: make(chan accepted)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

type tlsListener struct {
	net.Listener
	config   *tls.Config
	accepted chan accepted // unbuffered: every connection has an owner
	started  sync.Once
	ctx      context.Context //nolint:containedctx // it is this listener's life, which no call gives
	cancel   context.CancelFunc
}

type accepted struct {
	nc  net.Conn
	err error
}

// Accept returns the next connection whose handshake is complete.
func (l *tlsListener) Accept() (net.Conn, error) {
	l.started.Do(func() { go l.run() })
	select {
	case a := <-l.accepted:
		return a.nc, a.err
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close ends handshakes, too.
func (l *tlsListener) Close() error {
	l.cancel()
	return l.Listener.Close()
}

// run accepts until the listener is closed. Each handshake has its own goroutine: a slow client
// delays no other.
func (l *tlsListener) run() {
	for {
		nc, err := l.Listener.Accept()
		if err == nil {
			go l.handshake(nc)
			continue
		}
		select {
		case l.accepted <- accepted{err: err}: // unchanged: net/http decides by it whether to continue
		case <-l.ctx.Done():
			return
		}
		if errors.Is(err, net.ErrClosed) {
			l.cancel()
			return
		}
	}
}

func (l *tlsListener) handshake(nc net.Conn) {
	t := tls.Server(nc, l.config)
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTimeout)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		AnswerPlainHTTP(err)
		_ = nc.Close()
		return
	}
	var c net.Conn = t
	if t.ConnectionState().NegotiatedProtocol != "h2" {
		c = &tlsConn{conn{Conn: t}, t}
	}
	select {
	case l.accepted <- accepted{nc: c}:
	case <-l.ctx.Done():
		_ = nc.Close()
	}
}

// AnswerPlainHTTP answers a request of HTTP without TLS, by the error of the handshake that it
// failed: its browser was sent to the wrong port.
func AnswerPlainHTTP(handshake error) {
	if re, ok := errors.AsType[tls.RecordHeaderError](handshake); ok && re.Conn != nil && looksLikeHTTP(re.RecordHeader) {
		_, _ = io.WriteString(re.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
	}
}

// looksLikeHTTP reports whether the first bytes are those of a common method.
func looksLikeHTTP(b [5]byte) bool {
	switch string(b[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}

// tlsConn is a filtered connection over TLS: net/http asks for the state, to set r.TLS.
type tlsConn struct {
	conn
	tls *tls.Conn
}

// ConnectionState returns the state of the handshake.
func (c *tlsConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// NetConn returns the connection below TLS.
func (c *tlsConn) NetConn() net.Conn { return c.tls.NetConn() }
