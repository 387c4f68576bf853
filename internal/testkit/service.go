package testkit

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// service is one server that scripts/services runs, until the test ends.
type service struct {
	Pid int    // of the server
	Dir string // its files

	name string
	said *said // what is wrong
	hold io.WriteCloser
	out  *bufio.Reader
}

// launch runs scripts/services until the test ends. ready waits for the server; it is called
// once, and by the test's goroutine.
func launch(t testing.TB, args ...string) (ready func() *service) {
	t.Helper()
	c := exec.Command(filepath.Join(root(t), "scripts", "services"), args...) //nolint:gosec,noctx // our own script; it ends with its input
	s := &service{Dir: args[1], name: args[0], said: new(said)}
	c.Stderr = s.said
	var err error
	if s.hold, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		missing(t, "scripts/services: "+err.Error())
	}
	s.out = bufio.NewReader(out)
	t.Cleanup(func() {
		_ = s.hold.Close()
		_ = c.Wait() // a server that was ended on purpose makes the script fail
	})
	return func() *service {
		t.Helper()
		if !s.ready(t) {
			_ = s.hold.Close()
			_ = c.Wait()
			missing(t, "scripts/services "+s.name+": "+s.Said())
		}
		return s
	}
}

// ready waits until the server takes connections, or will never.
func (s *service) ready(t testing.TB) bool {
	t.Helper()
	line, _ := s.out.ReadString('\n')
	number, ready := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if !ready {
		return false
	}
	var err error
	if s.Pid, err = strconv.Atoi(number); err != nil {
		t.Fatalf("scripts/services said %q", line)
	}
	return true
}

// Again starts a server that was killed once more, on the same data, and returns when it
// takes connections.
func (s *service) Again(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(s.hold, "again\n"); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	if !s.ready(t) {
		t.Fatalf("%s does not start again: %s", s.name, s.Said())
	}
}

// Said returns what servers said last that died, and what is wrong.
func (s *service) Said() string { return s.said.text() }

// said is what a process says, also while it does.
type said struct {
	mu  sync.Mutex
	all bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(b)
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(s.all.String())
}

// start is launch and ready in one.
func start(t testing.TB, args ...string) (pid int) {
	t.Helper()
	return launch(t, args...)().Pid
}
