package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// startOn starts a command on one core, as taskset does: the child inherits the
// affinity of the thread that forks it, and a Go program then runs on one P.
func startOn(cmd *exec.Cmd, core int) error {
	if core < 0 {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read the affinity: %w", err)
	}
	if err := setCore(0, core); err != nil {
		return err
	}
	err := cmd.Start()
	if back := unix.SchedSetaffinity(0, &before); back != nil {
		return fmt.Errorf("restore the affinity: %w", back)
	}
	return err
}

func setCore(thread, core int) error {
	var one unix.CPUSet
	one.Set(core)
	if err := unix.SchedSetaffinity(thread, &one); err != nil {
		return fmt.Errorf("pin to core %d: %w", core, err)
	}
	return nil
}

// PinSelf moves every thread of this process to one core, and returns how to
// undo it.
func PinSelf(core int) (undo func() error, err error) {
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("read the affinity: %w", err)
	}
	one.Set(core)
	return func() error { return setThreads(&before) }, setThreads(&one)
}

// setThreads sets the affinity of all threads. A new thread inherits it from the
// one that makes it, so after two equal looks at the list none is left out.
func setThreads(set *unix.CPUSet) error {
	for last := -1; ; {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("list threads: %w", err)
		}
		if len(tasks) == last {
			return nil
		}
		last = len(tasks)
		for _, task := range tasks {
			id, err := strconv.Atoi(task.Name())
			if err != nil {
				return fmt.Errorf("list threads: %w", err)
			}
			if err := unix.SchedSetaffinity(id, set); err != nil && err != unix.ESRCH { // it ended meanwhile
				return fmt.Errorf("pin thread %d: %w", id, err)
			}
		}
	}
}

// Output runs a command to its end and returns what it printed to its standard
// output. Command.Ready is ignored.
func Output(ctx context.Context, c Command) ([]byte, error) {
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Path, c.Args...) //nolint:gosec // what is measured
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Env, &out, &log
	if err := startOn(cmd, c.Core); err != nil {
		return nil, fmt.Errorf("run %s: %w", c.Path, err)
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("run %s: %w\n%s", c.Path, err, log.String())
	}
	return out.Bytes(), nil
}
