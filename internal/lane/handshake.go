package lane

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"curt/internal/lane/proxyproto"
	"curt/internal/lane/strict"
)

// handshake does what comes before HTTP: the PROXY header and the TLS handshake, each
// within headTimeout. It returns a connection that agreed on HTTP/2, for net/http, or nil; ok is
// false when the connection is to be closed.
func (c *conn) handshake() (http2 net.Conn, ok bool) {
	if c.lane.cfg.ProxyProtocol && c.peer.trusted {
		p, err := proxyproto.Read(c.tcp.Conn)
		if err != nil {
			return nil, false
		}
		c.nc, c.input.pending = p, p.TakeBuffered()
		c.setPeer(p.RemoteAddr())
	}
	if c.lane.cfg.TLS == nil {
		return nil, true
	}
	c.enter(stateHandshake)
	if !c.input.readClientHello(c.nc) {
		return nil, false
	}
	c.nc = &replay{Conn: c.nc, rest: c.input.pending}
	c.input.pending = nil
	return c.handshakeTLS()
}

func (c *conn) handshakeTLS() (http2 net.Conn, ok bool) {
	below := &tlsTransport{Conn: c.nc}
	t := tls.Server(below, c.lane.cfg.TLS)
	// Closing the connection ends the handshake. A context that ends would cost a goroutine
	// for each handshake that does not advance.
	if err := t.HandshakeContext(context.Background()); err != nil {
		strict.AnswerPlainHTTP(err)
		return nil, false
	}
	c.nc = t
	if t.ConnectionState().NegotiatedProtocol != "h2" {
		return nil, true
	}
	below.conn = c
	return t, true
}

// tlsTransport is below TLS. net/http closes HTTP/2 by its *tls.Conn, and this removes it from the
// connections of the lane.
type tlsTransport struct {
	net.Conn
	conn *conn // nil unless net/http has the connection; set before it is handed off
	done sync.Once
}

// Close closes the connection.
func (t *tlsTransport) Close() error {
	if t.conn != nil {
		t.done.Do(func() { t.conn.lane.conns.removeHTTP2(t.conn) })
	}
	return t.Conn.Close()
}
