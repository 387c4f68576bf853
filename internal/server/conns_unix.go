//go:build unix

package server

import "syscall"

// keptBack are the descriptors that stay for databases, logs and listeners, so that
// a flood of connections never takes a store's.
const keptBack = 128

// maxConns is how many of the connections that were asked for the descriptor limit
// allows.
func maxConns(want int) int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return want
	}
	limit := int(min(uint64(r.Cur), 1<<30)) //nolint:unconvert // its type is another on FreeBSD
	return min(want, max(limit-keptBack, limit/2))
}
