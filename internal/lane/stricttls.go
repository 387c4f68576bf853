package lane

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// handshakeTime bounds a handshake.
const handshakeTime = 10 * time.Second

// StrictTLS returns a listener that speaks TLS, whose connections of HTTP/1.x are refused what
// the lane refuses; those of HTTP/2 are *tls.Conn, as net/http wants them. The first Accept
// begins to accept from l, and Close ends that.
func StrictTLS(l net.Listener, config *tls.Config) net.Listener {
	s := &tlsListener{Listener: l, config: config, accepted: make(chan accepted)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

type tlsListener struct {
	net.Listener
	config   *tls.Config
	accepted chan accepted // unbuffered: what is in it is somebody's
	begun    sync.Once
	ctx      context.Context //nolint:containedctx // it is this listener's life, which no call gives
	cancel   context.CancelFunc
}

type accepted struct {
	nc  net.Conn
	err error
}

// Accept returns the next connection that has shaken hands.
func (l *tlsListener) Accept() (net.Conn, error) {
	l.begun.Do(func() { go l.run() })
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

// run accepts until the listener is closed. A handshake is its client's matter: nobody waits
// for another's.
func (l *tlsListener) run() {
	for {
		nc, err := l.Listener.Accept()
		if err == nil {
			go l.greet(nc)
			continue
		}
		select {
		case l.accepted <- accepted{err: err}: // as it is: net/http asks it whether to go on
		case <-l.ctx.Done():
			return
		}
		if errors.Is(err, net.ErrClosed) {
			l.cancel()
			return
		}
	}
}

func (l *tlsListener) greet(nc net.Conn) {
	t := tls.Server(nc, l.config)
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTime)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		tellPlain(err)
		_ = nc.Close()
		return
	}
	var c net.Conn = t
	if t.ConnectionState().NegotiatedProtocol != "h2" {
		c = &strictTLSConn{strictConn{Conn: t}, t}
	}
	select {
	case l.accepted <- accepted{nc: c}:
	case <-l.ctx.Done():
		_ = nc.Close()
	}
}

// tellPlain tells a browser that was sent to the wrong port why it fails.
func tellPlain(err error) {
	if re, ok := errors.AsType[tls.RecordHeaderError](err); ok && re.Conn != nil && looksLikeHTTP(re.RecordHeader) {
		_, _ = io.WriteString(re.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
	}
}

// strictTLSConn is a strictConn over TLS: net/http asks for the state, to set r.TLS.
type strictTLSConn struct {
	strictConn
	tls *tls.Conn
}

// ConnectionState returns the state of the handshake.
func (c *strictTLSConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// NetConn returns the connection below TLS.
func (c *strictTLSConn) NetConn() net.Conn { return c.tls.NetConn() }
