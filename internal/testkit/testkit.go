// Package testkit starts the real services that tests run against, through
// scripts/services, and ends them with the test. Only tests import it.
//
// A service that cannot be started skips the test with one line that says what is
// missing; with CI=true it fails it.
package testkit

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
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

// FreePort returns a port of the loopback that nobody listens on, and that no other test on this
// machine is given until this one ends: a service may take long to listen. It is below those
// that the kernel gives to connections, of which tests make thousands.
func FreePort(t testing.TB) string {
	t.Helper()
	return FreePorts(t, 1)
}

// FreePorts returns the first of n consecutive ports, each as one of FreePort.
func FreePorts(t testing.TB, n int) string {
	t.Helper()
	for range 100 {
		first := firstPort + rand.IntN(lastPort-firstPort-n)
		free := true
		for port := first; free && port < first+n; port++ {
			free = reserve(t, strconv.Itoa(port)) && unused(strconv.Itoa(port))
		}
		if free {
			return strconv.Itoa(first)
		}
	}
	t.Fatalf("no %d consecutive ports are free", n)
	return ""
}

// unused reports whether nobody listens on a port.
func unused(port string) bool {
	l, err := net.Listen("tcp", "127.0.0.1:"+port) //nolint:noctx // bound and released at once
	return err == nil && l.Close() == nil
}

// reserve locks the file of a port until the test ends, and reports whether nobody else has.
func reserve(t testing.TB, port string) bool {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "curt-test-port-"+port), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false // it is another user's
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || !isThere(f) {
		_ = f.Close()
		return false
	}
	t.Cleanup(func() {
		_ = os.Remove(f.Name())
		_ = f.Close()
	})
	return true
}

// isThere reports whether an open file is the one of its name: a test that ended may have removed that in between, and
// another one made it anew.
func isThere(f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(opened, named)
}

// The ports of services of tests: Linux gives 32768 and those above it to connections, and nodes
// of a Redis Cluster listen 10,000 above their own, too.
const (
	firstPort = 12_000
	lastPort  = 22_000
)

// until waits for what other processes have to come to, three minutes at the most.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("three minutes passed without %s", what)
		}
	}
}
