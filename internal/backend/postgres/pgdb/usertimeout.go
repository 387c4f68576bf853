//go:build !linux

package pgdb

import "syscall"

// setUserTimeout does nothing where the system has no such limit; limits of statements and
// probes of idle connections hold.
func setUserTimeout(_, _ string, _ syscall.RawConn) error { return nil }
