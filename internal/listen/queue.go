package listen

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// queued reports whether a connection waits to be accepted. It never waits itself.
func queued(l net.Listener) bool {
	s, ok := l.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		asked := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for again := true; again; {
			var failed error
			n, failed = unix.Poll(asked, 0)
			again = errors.Is(failed, unix.EINTR)
		}
	})
	return err == nil && n > 0
}
