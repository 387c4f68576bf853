package testkit

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// Stop stops every process of the server, for as long as f runs: it takes connections
// then, and answers nobody.
func (p *Postgres) Stop(t testing.TB, f func()) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
	defer p.signal(t, syscall.SIGCONT)
	f()
}

// Kill ends every process of the server at once, as a machine that fails does, and
// returns when they are gone.
func (p *Postgres) Kill(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	until(t, fmt.Sprintf("the end of PostgreSQL (pid %d)", p.Pid), func() bool { return !lives(p.Pid) })
}

// lives reports whether a process is there that has not ended: who began it may not have
// asked for its end yet.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return err == nil && !bytes.HasPrefix(state, []byte("Z"))
}

// signal sends a signal to the server and those that it began. It stands still meanwhile: it would begin others.
func (p *Postgres) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.Pid, syscall.SIGSTOP); err != nil {
		t.Fatalf("stop %d: %v", p.Pid, err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.Pid, p.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.Pid, s); err != nil {
		t.Fatalf("signal %d: %v", p.Pid, err)
	}
	for field := range bytes.FieldsSeq(children) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			_ = syscall.Kill(pid, s) // some may have ended
		}
	}
}

// Kill ends the server at once, as a machine that fails does, and returns when it is gone.
func (s *service) Kill(t testing.TB) {
	t.Helper()
	s.Signal(t, syscall.SIGKILL)
	until(t, s.name+" gone", func() bool { return !lives(s.Pid) })
}

// Lives reports whether the server is there.
func (s *service) Lives() bool { return lives(s.Pid) }

// Signal sends the server a signal, such as one that stops it for a while.
func (s *service) Signal(t testing.TB, what syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(s.Pid, what); err != nil {
		t.Fatalf("signal %s (%d): %v", s.name, s.Pid, err)
	}
}
