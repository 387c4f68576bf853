package background

import (
	"log/slog"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAThreadOfLowPriorityIsNicerThanItsProcess(t *testing.T) {
	ours := nice(t, unix.Getpid())
	s := New(slog.New(slog.NewTextHandler(t.Output(), nil)))
	low := make(chan int)
	go func() {
		s.LowerPriority()
		low <- nice(t, 0)
	}()
	if got := <-low; got != min(ours+lowNice, 19) {
		t.Errorf("its niceness is %d, want %d more than %d", got, lowNice, ours)
	}
	other := make(chan int)
	go func() { other <- nice(t, 0) }() // no other goroutine runs on that thread, or inherits from it
	if got := <-other; got != ours {
		t.Errorf("another's niceness is %d, want %d", got, ours)
	}
}

func TestSlicesAreShortenedExceptAtLowPriority(t *testing.T) {
	s := New(slog.New(slog.NewTextHandler(t.Output(), nil)))
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if before.Runtime == 0 || before.Policy != unix.SCHED_NORMAL {
		t.Skip("this kernel has no slices (Linux 6.12 has), or another policy was chosen")
	}
	if err := shortenSlices(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		low  bool
		want uint64
	}{{"any goroutine", false, promptSlice}, {"one of low priority", true, lowSlice}} {
		slices := make(chan uint64)
		go func() {
			if c.low {
				s.LowerPriority()
			} else {
				runtime.LockOSThread() // a new thread, which is not kept
			}
			a, err := unix.SchedGetAttr(0, 0)
			if err != nil {
				t.Error(err)
				a = new(unix.SchedAttr)
			}
			slices <- a.Runtime
		}()
		if got := <-slices; got != c.want {
			t.Errorf("slice of %s is %d ns, want %d", c.name, got, c.want)
		}
	}
}

// nice returns the niceness of a thread; 0 = the calling one.
func nice(t *testing.T, tid int) int {
	t.Helper()
	n, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil {
		t.Error(err)
	}
	return 20 - n // as the system call returns it
}
