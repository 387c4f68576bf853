// Package testkit starts the real services that tests run against, through
// scripts/services, and ends them with the test. Only tests import it.
//
// A service that cannot be started skips the test with one line that says what is
// missing; with CI=true it fails it.
package testkit

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
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

// until waits for what other processes have to come to, a minute at the most.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a minute passed without %s", what)
		}
	}
}
