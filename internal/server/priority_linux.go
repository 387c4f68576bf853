package server

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	// asideNice, which is added, leaves a thread a third of what another gets: on a core that has no
	// time left, about what counting a redirect costs beside the redirect.
	asideNice = 5

	// asideSlice is the longest there is, in nanoseconds. Since Linux 6.12 a thread
	// with a shorter slice that wakes up need not wait for the end of this one's;
	// otherwise that may take a tick of the kernel, 4 ms. Older kernels ignore it.
	asideSlice = 100e6
)

// lowerPriority lowers the calling thread's priority, which needs no right.
func lowerPriority() error {
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return fmt.Errorf("sched_getattr: %w", err)
	}
	if a.Policy != unix.SCHED_NORMAL {
		return nil // whoever started the process chose, for all its threads
	}
	a.Nice, a.Runtime = min(a.Nice+asideNice, 19), asideSlice
	if err := unix.SchedSetAttr(0, a, 0); err != nil {
		return fmt.Errorf("sched_setattr: %w", err)
	}
	return nil
}
