package listen

import (
	"fmt"
	"strconv"
	"syscall"

	"curt/internal/config"
)

// keptBack are the descriptors that stay for databases, logs and listeners, so that
// a flood of connections never takes a store's. Where the limit is low, half of it does,
// of which they need most of 64: leastDescriptors is the lowest limit to start with.
const keptBack, leastDescriptors = 128, 128

// maxConns is how many of the wanted connections the descriptor limit allows.
func maxConns(want int) int {
	limit, err := descriptors()
	if err != nil {
		return want
	}
	return min(want, max(limit-keptBack, limit/2))
}

// CheckDescriptors refuses a limit with which connections would take the descriptors of stores.
func CheckDescriptors() error {
	limit, err := descriptors()
	if err != nil {
		return nil //nolint:nilerr // an unknown limit forbids nothing
	}
	return enoughDescriptors(limit)
}

func enoughDescriptors(limit int) error {
	if limit >= leastDescriptors {
		return nil
	}
	return &config.Error{
		Setting: "RLIMIT_NOFILE", Value: strconv.Itoa(limit),
		Want: fmt.Sprintf("descriptor limit too low, curt needs at least %d; raise it (ulimit -n, LimitNOFILE, ulimits)", leastDescriptors),
	}
}

// descriptors is the limit in force: the Go runtime has raised it as far as it may.
func descriptors() (int, error) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, err
	}
	return int(min(uint64(r.Cur), 1<<30)), nil //nolint:unconvert // its type is another on FreeBSD
}
