package lane

import (
	"io"
	"net"
	"syscall"
)

// rawConn is how a connection without TLS is read: the goroutine stays inside of one
// syscall.RawConn.Read, which calls readable whenever there may be bytes. Compared
// with net.Conn.Read and Write it saves the runtime's bookkeeping of each, and an
// idle connection has no buffer waiting.
//
// The trap: the runtime's poller is edge-triggered, so readable must read until
// EAGAIN before it waits. A short read does not show that all was read: an end of
// stream that came with the bytes makes no second event.
type rawConn struct {
	syscall.RawConn
	ready func(fd uintptr) (done bool) // c.readable, made once

	// What readable left for handle.
	bytes   []byte
	scratch *scratch
	err     error
}

// newRawConn returns nil when the connection cannot be read so.
func newRawConn(c *conn) *rawConn {
	tcp, ok := c.tcp.(*net.TCPConn)
	if !ok || c.lane.cfg.TLS != nil {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return &rawConn{RawConn: raw, ready: c.readable}
}

// next waits for something that is no hit.
func (r *rawConn) next() ([]byte, *scratch, error) {
	if err := r.Read(r.ready); err != nil {
		return nil, nil, err
	}
	b, s, err := r.bytes, r.scratch, r.err
	r.bytes, r.scratch, r.err = nil, nil, nil
	return b, s, err
}

// readable answers hits until there is nothing to read. It reports true when handle
// has to see to something.
func (c *conn) readable(fd uintptr) (done bool) {
	s, _ := c.lane.pool.Get().(*scratch)
	for {
		room := s.in[:]
		if len(c.own) > 0 {
			room = c.room()
		}
		n, err := syscall.Read(int(fd), room)
		switch {
		case err == syscall.EAGAIN:
			c.lane.pool.Put(s)
			return false
		case err == syscall.EINTR:
			continue
		case err == nil && n == 0:
			err = io.EOF
		}
		r := c.raw
		r.bytes, r.scratch, r.err = nil, s, err
		if err != nil {
			return true
		}
		r.bytes = room[:n]
		if len(c.own) > 0 {
			c.own = c.own[:len(c.own)+n]
			r.bytes = c.own
		}
		c.look(s, r.bytes)
		if !s.ready {
			return true
		}
		// The socket's buffer is empty but for a client that does not read.
		if n, err = syscall.Write(int(fd), s.out); err != nil || n < len(s.out) || s.closing {
			s.sent = max(n, 0) // after an error, send finds it again
			return true
		}
		c.record(s)
		c.done()
	}
}
