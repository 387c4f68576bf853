package curttest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Begin starts a server that is not curt alone, as one in front of it, and returns when
// it listens at the address; the test fails when it ends before, or does not within the
// bound. It is sent SIGTERM when the test ends, and killed a minute later.
func Begin(t testing.TB, cmd *exec.Cmd, address string, bound time.Duration) {
	t.Helper()
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = said.Close() }()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // by its signal
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	for end := time.Now().Add(bound); ; time.Sleep(10 * time.Millisecond) {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(said.Name())
			t.Fatalf("%s ended\n%s", cmd.Path, text)
		default:
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(said.Name())
			t.Fatalf("%s does not listen\n%s", cmd.Path, text)
		}
	}
}
