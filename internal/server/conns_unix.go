//go:build unix

package server

import (
	"syscall"

	"curt/internal/lane"
)

// keptBack are the descriptors that stay for databases, logs and listeners, so that
// a flood of connections never takes a store's.
const keptBack = 128

// maxConns is how many connections the descriptor limit allows.
func maxConns() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return lane.DefaultMaxConns
	}
	limit := int(min(uint64(r.Cur), 1<<30)) //nolint:unconvert // its type is another on FreeBSD
	return min(lane.DefaultMaxConns, max(limit-keptBack, limit/2))
}
