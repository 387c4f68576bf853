package background

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Since Linux 6.12 a thread with a shorter slice that wakes up preempts one with a longer slice
// before the kernel's next tick, up to 4 ms away; older kernels ignore slices. Both are in
// nanoseconds. Those of low priority are no longer than this, because the collector of garbage
// waits for each of these threads in turn when it stops the world: with 100 ms a redirect waited
// for 80.
const (
	promptSlice = 100e3 // the shortest there is
	lowSlice    = 3e6
)

// lowNice is added, and leaves a thread a tenth of what another gets. With 5, a third, a burst of
// redirects waited until these threads had had their share.
const lowNice = 10

// lowerPriority lowers the calling thread's priority, which needs no right.
func lowerPriority() error {
	return setPriority(0, func(a *unix.SchedAttr) { a.Nice, a.Runtime = min(a.Nice+lowNice, 19), lowSlice })
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
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
			return err
		}
	}
	return nil
}

// setPriority changes the scheduling attributes of a thread; 0 = the calling one.
func setPriority(thread int, change func(*unix.SchedAttr)) error {
	a, err := unix.SchedGetAttr(thread, 0)
	if err != nil {
		return fmt.Errorf("sched_getattr: %w", err)
	}
	if a.Policy != unix.SCHED_NORMAL {
		return nil // the operator chose another policy for the whole process
	}
	change(a)
	if err := unix.SchedSetAttr(thread, a, 0); err != nil {
		return fmt.Errorf("sched_setattr: %w", err)
	}
	return nil
}
