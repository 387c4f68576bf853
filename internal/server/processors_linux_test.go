package server

import (
	"log/slog"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAThreadThatStandsAsideIsNicerThanItsProcess(t *testing.T) {
	ours := nice(t, unix.Getpid())
	s := &Server{log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	aside := make(chan int)
	go func() {
		s.standAside()
		aside <- nice(t, 0)
	}()
	if got := <-aside; got != min(ours+asideNice, 19) {
		t.Errorf("its niceness is %d, want %d more than %d", got, asideNice, ours)
	}
	other := make(chan int)
	go func() { other <- nice(t, 0) }() // no other goroutine runs on that thread, or inherits from it
	if got := <-other; got != ours {
		t.Errorf("another's niceness is %d, want %d", got, ours)
	}
}

func TestSlicesAreShortenedButOfThoseAside(t *testing.T) {
	s := &Server{log: slog.New(slog.NewTextHandler(t.Output(), nil))}
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
		name  string
		aside bool
		want  uint64
	}{{"any goroutine", false, promptSlice}, {"one that stands aside", true, asideSlice}} {
		slices := make(chan uint64)
		go func() {
			if c.aside {
				s.standAside()
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
