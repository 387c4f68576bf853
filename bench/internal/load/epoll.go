package load

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller is an epoll set of readable sockets.
type poller struct {
	fd     int
	events [128]unix.EpollEvent
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make an epoll set: %w", err)
	}
	return &poller{fd: fd}, nil
}

// add watches a socket; id comes back from wait. Closing the socket removes it.
func (p *poller) add(fd, id int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(id)}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("watch a socket: %w", err)
	}
	return nil
}

// wait returns the ids of readable sockets, none after the time is over. It is
// epoll_pwait2, because the milliseconds of epoll_wait are as long as the
// latencies that are measured.
func (p *poller) wait(d time.Duration) ([]unix.EpollEvent, error) {
	ts := unix.NsecToTimespec(int64(max(d, 0)))
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), //nolint:gosec // the kernel fills the array that p holds
		uintptr(unsafe.Pointer(&ts)), 0, 0) //nolint:gosec // read during the call only
	if errno != 0 {
		if errors.Is(errno, unix.EINTR) {
			return nil, nil
		}
		return nil, fmt.Errorf("epoll_pwait2 (Linux 5.11 or newer): %w", errno)
	}
	return p.events[:n], nil
}

func (p *poller) close() error { return unix.Close(p.fd) }
