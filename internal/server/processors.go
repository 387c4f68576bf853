package server

import (
	"context"
	"log/slog"
	"runtime"
)

// leastProcessors is how many goroutines may run at once at the least, whatever the
// machine has. Go does not look at the network while a goroutine is ready that
// computes (runtime/proc.go, findRunnable), so on one processor redirects waited for
// Fold and for whole batches of roll-ups: up to 1.5 s at p99. With a P for each of
// the two that compute for long, and one more, a thread always waits in epoll, and
// the kernel wakes it as soon as a request is there. What that costs
// a redirect is in docs/decisions/0012.
const leastProcessors = 3

// spareProcessors applies leastProcessors to the process.
func spareProcessors() {
	if runtime.GOMAXPROCS(0) < leastProcessors {
		runtime.GOMAXPROCS(leastProcessors)
	}
}

// aside runs a loop on a thread of its own that stands back for all others.
func (s *Server) aside(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		s.standAside()
		return run(ctx)
	}
}

// standAside makes the kernel prefer all other threads to the calling goroutine's,
// for the rest of that goroutine's life. It is for what computes for long and that
// nobody waits for.
func (s *Server) standAside() {
	runtime.LockOSThread() // never undone: the thread ends with its goroutine
	if err := lowerPriority(); err != nil {
		runtime.UnlockOSThread()
		s.log.WarnContext(context.Background(), "redirects may wait while clicks are counted", slog.Any("err", err))
	}
}
