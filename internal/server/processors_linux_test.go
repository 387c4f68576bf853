package server

import (
	"log/slog"
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
	if got := <-aside; got != min(ours+5, 19) {
		t.Errorf("its niceness is %d, want 5 more than %d", got, ours)
	}
	other := make(chan int)
	go func() { other <- nice(t, 0) }() // no other goroutine runs on that thread, or inherits from it
	if got := <-other; got != ours {
		t.Errorf("another's niceness is %d, want %d", got, ours)
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
