package lane

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// How a connection ends.
//
// Other goroutines interrupt a read by its deadline, and close the connection: its own goroutine
// then gets an error from what it does.
//
// Lingering (RFC 9112, 9.6): a close with bytes unread, or with bytes on their way,
// makes the kernel reset the connection, and a reset may destroy the last answer before
// its client has read it. So a connection whose end the client did not ask for closes its own half
// and reads on: until the client closes, within these bounds. It counts against Config.MaxConns,
// is the first to be evicted, and has a time-out. A client that asked for the end must send nothing
// more, and gets a plain close. HTTP/2 has GOAWAY instead.
const (
	lingerTimeout = time.Second
	lingerBytes   = 4 << 20
)

// socket is a connection as it was accepted, which other goroutines interrupt and close. Closing it ends
// everything above.
type socket struct {
	net.Conn
	deadline sync.Mutex  // guards the read deadline, by which a read is interrupted
	closed   atomic.Bool // set by the first to close it
	released bool        // guarded by deadline: the read deadline is net/http's
}

// interrupt makes a waiting read return, to look for the end of the stream.
func (s *socket) interrupt() {
	s.deadline.Lock()
	defer s.deadline.Unlock()
	if !s.released {
		_ = s.SetReadDeadline(time.Unix(1, 0)) // an error means that it is closed
	}
}

// clearDeadline lets reads wait again.
func (s *socket) clearDeadline() error {
	s.deadline.Lock()
	defer s.deadline.Unlock()
	return s.SetReadDeadline(time.Time{})
}

// release is clearDeadline after which nothing interrupts: net/http's deadlines are its own.
func (s *socket) release() error {
	s.deadline.Lock()
	defer s.deadline.Unlock()
	s.released = true
	return s.SetReadDeadline(time.Time{})
}

// closeOnce closes the connection and reports whether it was the first to do so.
func (s *socket) closeOnce() bool {
	if s.closed.Swap(true) {
		return false
	}
	_ = s.Close()
	return true
}

// linger closes our half, discards what comes and returns when the client has
// closed, or a bound is met; the caller closes.
func (c *conn) linger() {
	c.enter(stateLingering)
	if c.tcp.release() != nil || c.tcp.SetDeadline(time.Time{}) != nil {
		return
	}
	if c.nc != c.tcp.Conn && closeWrite(c.nc) != nil { // close_notify
		return
	}
	if closeWrite(c.tcp.Conn) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.tcp.Conn, lingerBytes) // any end of it ends the connection
}

func closeWrite(nc net.Conn) error {
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// lingerAfterHTTP is the rest of the life of a connection that net/http closed.
func (c *conn) lingerAfterHTTP(h *httpConn) {
	defer c.lane.conns.removeLingering(c)
	h.reading.Lock() // its reader has returned, or returns at the time-out
	defer h.reading.Unlock()
	c.linger()
	c.tcp.closeOnce()
}

// AwaitLingering waits for connections whose last answer may still be on its way, after Shutdown
// and after the server behind the lane has ended; when ctx ends they are closed. From
// then on connections that the server closes are closed at once. Run must be running.
func (l *Lane) AwaitLingering(ctx context.Context) {
	select {
	case <-l.conns.noneLingering():
	case <-ctx.Done():
	}
	l.conns.closeLingering()
	<-l.conns.noneLingering()
}
