package lane

import (
	"context"
	"crypto/tls"
	"net"
)

// greet does what comes before HTTP: the PROXY header and the TLS handshake, each
// within headLimit. It returns a connection on which HTTP/2 was agreed on, which
// net/http must have unread, or nil; ok is false when the connection is to be closed.
func (c *conn) greet() (early net.Conn, ok bool) {
	if c.lane.cfg.ProxyProtocol && c.trusted {
		p, err := readProxy(c.tcp)
		if err != nil {
			return nil, false
		}
		c.nc, c.own = p, p.take()
		c.setPeer(p.RemoteAddr())
	}
	if c.lane.cfg.TLS == nil {
		return nil, true
	}
	c.enter(greeting)
	if !c.hello() {
		return nil, false
	}
	c.nc = &replay{Conn: c.nc, rest: c.own}
	c.own = nil
	return c.shakeHands()
}

// hello waits until the first record of a handshake is whole. One that does not advance costs a
// few KB so; TLS has a deep stack, and buffers, from its first byte on.
func (c *conn) hello() bool {
	const (
		header    = 5 // type, version, length
		handshake = 22
	)
	for {
		if b := c.own; len(b) >= header && (b[0] != handshake || len(b) >= min(header+int(b[3])<<8+int(b[4]), maxHead)) {
			return true // whatever it is, TLS has the words for it
		}
		n, err := c.nc.Read(c.room())
		c.own = c.own[:len(c.own)+n]
		if n == 0 && err != nil {
			return false
		}
	}
}

// below is what lies under TLS. It counts a connection out that net/http closes by
// its *tls.Conn.
type below struct {
	net.Conn
	closed func() // nil until net/http has the connection; set before it is given
	away   *conn  // set with closed
}

// Close closes the connection.
func (b *below) Close() error {
	if b.closed != nil {
		b.closed()
	}
	return b.Conn.Close()
}

func (c *conn) shakeHands() (early net.Conn, ok bool) {
	under := &below{Conn: c.nc}
	t := tls.Server(under, c.lane.cfg.TLS)
	// Whoever cuts the connection off closes it. A context that ends would cost a goroutine
	// for each handshake that does not advance.
	if err := t.HandshakeContext(context.Background()); err != nil {
		tellPlain(err)
		return nil, false
	}
	c.nc = t
	if t.ConnectionState().NegotiatedProtocol == "h2" {
		under.closed, under.away = c.countOut(), c
		return t, true
	}
	return nil, true
}

// looksLikeHTTP reports whether the first bytes are those of a common method.
func looksLikeHTTP(b [5]byte) bool {
	switch string(b[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}
