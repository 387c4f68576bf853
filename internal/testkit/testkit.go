// Package testkit starts the real services that tests run against, through
// scripts/services, and ends them with the test. Only tests import it.
//
// A service that cannot be started skips the test with one line that says what is
// missing; with CI=true it fails it.
package testkit

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// missing ends the test that needs a service.
func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// root finds the project's folder above the working directory of a test.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "services")); err == nil {
			return dir
		}
	}
	t.Fatal("scripts/services is not above the test's folder")
	return ""
}

// freePort returns a port of the loopback that nobody listens on. Between this and the
// start of the service another process may take it; the service then says so.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // bound and released at once
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

// start runs scripts/services until the test ends, and returns the pid of the service.
func start(t testing.TB, args ...string) (pid int) {
	t.Helper()
	c := exec.Command(filepath.Join(root(t), "scripts", "services"), args...) //nolint:gosec,noctx // our own script; it ends with its input
	var said bytes.Buffer
	c.Stderr = &said
	hold, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		missing(t, "scripts/services: "+err.Error())
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	number, ready := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if !ready {
		_ = hold.Close()
		_ = c.Wait()
		missing(t, "scripts/services "+args[0]+": "+strings.TrimSpace(said.String()))
	}
	t.Cleanup(func() {
		_ = hold.Close()
		_ = c.Wait() // a server that was ended on purpose makes the script fail
	})
	if pid, err = strconv.Atoi(number); err != nil {
		t.Fatalf("scripts/services said %q", line)
	}
	return pid
}
