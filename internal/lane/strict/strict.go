// Package strict holds connections that net/http serves to the rules of internal/lane: the requests
// that RFC 9112 forbids and net/http accepts are answered with 400 on every listener, wherever in a
// connection they come.
//
// net/http gets the bytes of a connection as they come, and a follower reads along: it knows where
// heads and bodies end. At the first malformed line net/http gets an invalid line end, which it
// answers with 400, and then the end of the stream. Nothing is held back, so time-outs, deadlines
// and idle connections are as without it.
package strict

import (
	"io"
	"net"
)

// invalid ends no line that net/http accepts: neither a request line nor a field nor the size of a
// chunk.
const invalid = "\x00\r\n\r\n"

// Filter cuts the bytes read of one connection at the first malformed request. It belongs to the
// connection's reader; the zero value is at the beginning of a connection.
type Filter struct {
	follower follower
	cut      bool   // net/http gets nothing more of the client
	tooLarge bool   // the head is: it continues until net/http answers 431
	rest     string // of invalid
}

// Pass follows what was read and returns how many bytes of it net/http gets.
func (f *Filter) Pass(b []byte) int {
	n, found := f.follower.follow(b)
	switch found {
	case malformed:
		f.cut, f.rest = true, invalid
	case oversized:
		f.cut, f.tooLarge = true, true
	case valid:
	}
	return n
}

// Cut reports whether net/http gets nothing more of the client, and reads from Read instead.
func (f *Filter) Cut() bool { return f.cut }

// Read returns what makes net/http refuse the request.
func (f *Filter) Read(p []byte) (int, error) {
	if f.tooLarge {
		for i := range p {
			p[i] = 'x'
		}
		return len(p), nil
	}
	n := copy(p, f.rest)
	if f.rest = f.rest[n:]; n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Listener returns a listener without TLS whose connections are filtered.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept returns the next connection.
func (l listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err // unchanged: net/http decides by it whether to continue
	}
	return &conn{Conn: nc}, nil
}

type conn struct {
	net.Conn
	filter Filter
}

// Read returns what the client sends, as long as it is valid.
func (c *conn) Read(p []byte) (int, error) {
	for !c.filter.cut {
		n, err := c.Conn.Read(p)
		passed := c.filter.Pass(p[:n])
		switch {
		case !c.filter.cut:
			return passed, err
		case passed > 0:
			return passed, nil
		}
	}
	return c.filter.Read(p)
}

// CloseWrite closes our half; net/http uses it so that a last answer is not lost.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NetConn returns the connection below, as that of tls.Conn does.
func (c *conn) NetConn() net.Conn { return c.Conn }
