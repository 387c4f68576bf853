package ddb

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// counted is a connection that knows how many bytes were written to it.
type counted struct {
	net.Conn

	written atomic.Int64
}

func (c *counted) Write(b []byte) (n int, err error) {
	n, err = c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// count makes the connections of a transport counted.
func count(t *http.Transport) {
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &counted{Conn: conn}, nil
	}
}

// sending watches whether an attempt left this machine.
type sending struct {
	conn   atomic.Pointer[counted] // that it has; nil = none yet, or one that is not counted
	before int64                   // bytes that were written to it for others
	some   atomic.Bool             // it has a connection
}

func (s *sending) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		conn := got.Conn
		if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
			conn = secure.NetConn()
		}
		if c, ok := conn.(*counted); ok {
			s.before = c.written.Load()
			s.conn.Store(c)
		}
		s.some.Store(true)
	}})
}

// nothing reports that no byte of the attempt was sent: it had no connection, or one that was closed
// already. It is true only of an attempt that has ended by itself: one whose context ended may still be
// written.
func (s *sending) nothing(ctx context.Context) bool {
	if !s.some.Load() {
		return true
	}
	c := s.conn.Load()
	return c != nil && ctx.Err() == nil && c.written.Load() == s.before
}

// unsent is the error of an attempt that never left this machine.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// final is an error after which nothing is sent again.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// RetryableError is what the SDK asks.
func (final) RetryableError() bool { return false }
