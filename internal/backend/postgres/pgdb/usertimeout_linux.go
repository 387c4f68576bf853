package pgdb

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// setUserTimeout has the kernel give up a connection whose peer acknowledges nothing.
func setUserTimeout(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
