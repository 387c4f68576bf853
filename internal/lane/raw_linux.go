package lane

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// rawConn is how a connection without TLS is read: the goroutine stays inside of one
// syscall.RawConn.Read, which calls readable whenever there may be bytes. Compared
// with net.Conn.Read and Write it saves the runtime's bookkeeping of each, and an
// idle connection has no buffer waiting.
//
// The trap: the runtime's poller is edge-triggered, so whoever waits must have read
// until EAGAIN. A short read shows that all bytes were read, but an end of stream
// that came with them makes no second event. Yet a read that finds nothing, once for
// each request, is a tenth of what a redirect costs. So a busy connection waits
// without it, in phase unsure, and when it turns quiet the sweeper wakes it, once,
// to look for the end. The price: a client that ends its half together with the
// second or a later request in a row sees our end up to three ticks later.
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
func (r *rawConn) next(c *conn) ([]byte, *scratch, error) {
	for {
		err := r.Read(r.ready)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || c.calm() != nil {
			return nil, nil, err
		}
	}
	b, s, err := r.bytes, r.scratch, r.err
	r.bytes, r.scratch, r.err = nil, nil, nil
	return b, s, err
}

// readable answers hits until there is nothing to read. It reports true when handle
// has to see to something.
func (c *conn) readable(fd uintptr) (done bool) {
	s := c.lane.spare.get(c.shard)
	for {
		room := s.in[:]
		if len(c.own) > 0 {
			room = c.room()
		}
		n, errno := transfer(syscall.SYS_READ, fd, room)
		switch {
		case errno == syscall.EAGAIN:
			if p, _ := c.phase(); p == unsure {
				c.enter(idle)
			}
			c.lane.spare.put(c.shard, s)
			return false
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			c.raw.leave(nil, s, errno)
			return true
		case n == 0:
			c.raw.leave(nil, s, io.EOF)
			return true
		}
		b := room[:n]
		if len(c.own) > 0 {
			c.own = c.own[:len(c.own)+n]
			b = c.own
		}
		c.look(s, b)
		if !s.ready || !c.answer(s, fd) {
			c.raw.leave(b, s, nil)
			return true
		}
		if n < len(room) && c.busy() {
			c.enter(unsure)
			c.lane.spare.put(c.shard, s)
			return false
		}
		c.enter(idle)
	}
}

// answer writes a prepared answer and reports whether the connection simply goes on.
func (c *conn) answer(s *scratch, fd uintptr) bool {
	// The socket's buffer is empty but for a client that does not read.
	n, errno := transfer(syscall.SYS_WRITE, fd, s.out)
	if errno != 0 || n < len(s.out) || s.closing {
		s.sent = max(n, 0) // send does the rest, and finds the error again
		return false
	}
	c.record(s)
	c.done()
	return true
}

// busy reports whether the request before this one was a moment ago.
func (c *conn) busy() bool {
	p, since := c.phase()
	return (p == idle || p == unsure) && c.lane.clock.now()-since <= tick.Milliseconds()
}

// transfer reads or writes. The descriptor never blocks, so the scheduler need not be
// told; RawConn keeps it open meanwhile.
func transfer(call, fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))) //nolint:gosec // the one way to such a call
	return int(n), errno
}

// leave puts down what handle is to see to.
func (r *rawConn) leave(b []byte, s *scratch, err error) { r.bytes, r.scratch, r.err = b, s, err }
