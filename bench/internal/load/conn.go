package load

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// dialBound is how long one connection may take to be made.
const dialBound = 5 * time.Second

// conn is one connection and the request on its way. The engine's thread owns it.
type conn struct {
	stream int
	fd     int
	out    []byte // the request
	in     []byte // read buffer; in[:n] has arrived
	n      int
	head   head

	busy     bool
	kept     bool          // it has answered before, so the server may have just begun to close it
	want     int           // the status of a right answer
	failed   error         // of the write; the request gets no answer
	due      time.Duration // when the request should have been sent, since the run began
	measured bool          // it belongs to the window
}

// dial connects a non-blocking socket. A signal may interrupt a connect (the runtime
// sends some), which then goes on where nobody can wait for it: another is made.
func dial(addr netip.AddrPort) (fd int, err error) {
	for {
		if fd, err = dialOnce(addr); !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func dialOnce(addr netip.AddrPort) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make a socket: %w", err)
	}
	if err := connect(fd, addr); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func connect(fd int, addr netip.AddrPort) error {
	bound := unix.NsecToTimeval(int64(dialBound)) // of connect too
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &bound); err != nil {
		return fmt.Errorf("bound the connect: %w", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: addr.Addr().As4(), Port: int(addr.Port())}); err != nil {
		return fmt.Errorf("connect to %s: %w", addr, err)
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("set TCP_NODELAY: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("set non-blocking: %w", err)
	}
	return nil
}

// write sends the request. It is far smaller than a socket's buffer, which is
// empty because the last answer came, so a short write is an error.
func (c *conn) write() error {
	n, err := unix.Write(c.fd, c.out)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if n != len(c.out) {
		return io.ErrShortWrite
	}
	c.n, c.head = 0, head{}
	return nil
}

// read takes what has arrived and reports whether the answer is whole.
func (c *conn) read() (whole bool, err error) {
	if c.n == len(c.in) {
		c.in = append(c.in, make([]byte, len(c.in))...)
	}
	n, err := unix.Read(c.fd, c.in[c.n:])
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read: %w", err)
	case n == 0:
		return false, errors.New("the server closed the connection")
	}
	c.n += n
	if c.head.total == 0 {
		if c.head, err = parseHead(c.in[:c.n]); err != nil {
			return false, err
		}
	}
	if c.head.total != 0 && c.n > c.head.total {
		return false, errors.New("bytes behind the answer")
	}
	return c.head.total != 0 && c.n == c.head.total, nil
}
