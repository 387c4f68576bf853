package server

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Since Linux 6.12 a thread with a shorter slice that wakes up need not wait for the end of
// another's, which may take a tick of the kernel, 4 ms; older kernels ignore slices. Both are
// in nanoseconds. Those of threads that stand aside are not longer than this, because the
// collector of garbage waits for each of them in turn when it stops the world: with 100 ms
// a redirect waited for 80.
const (
	promptSlice = 100e3 // the shortest there is
	asideSlice  = 3e6
)

// asideNice, which is added, leaves a thread a tenth of what another gets. With 5, a third,
// redirects that had come in a burst waited until those aside had had theirs.
const asideNice = 10

// lowerPriority lowers the calling thread's priority, which needs no right.
func lowerPriority() error {
	return setPriority(0, func(a *unix.SchedAttr) { a.Nice, a.Runtime = min(a.Nice+asideNice, 19), asideSlice })
}

// shortenSlices shortens those of all threads of the process, and of all that they start.
func shortenSlices() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return fmt.Errorf("list threads: %w", err)
		}
		err = setPriority(id, func(a *unix.SchedAttr) { a.Runtime = promptSlice })
		if err != nil && !errors.Is(err, unix.ESRCH) { // it ended meanwhile
			return err
		}
	}
	return nil
}

// setPriority changes how the kernel shares out a thread; 0 = the calling one.
func setPriority(thread int, change func(*unix.SchedAttr)) error {
	a, err := unix.SchedGetAttr(thread, 0)
	if err != nil {
		return fmt.Errorf("sched_getattr: %w", err)
	}
	if a.Policy != unix.SCHED_NORMAL {
		return nil // whoever started the process chose, for all its threads
	}
	change(a)
	if err := unix.SchedSetAttr(thread, a, 0); err != nil {
		return fmt.Errorf("sched_setattr: %w", err)
	}
	return nil
}
