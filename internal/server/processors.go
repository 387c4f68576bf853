package server

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"curt/internal/httpapi"
)

const (
	// leastProcessors is how many goroutines may run at once at the least while
	// something computes for long, whatever the machine has. Go does not look at the
	// network while a goroutine is ready that computes (runtime/proc.go,
	// findRunnable), so on one processor redirects waited for Fold and for whole
	// batches of roll-ups: up to 1.5 s at p99. With a P for each of the two, one for a
	// third or for the collector of garbage, and one more, a thread always waits in
	// epoll, and the kernel wakes it as soon as a request is there.
	leastProcessors = 4

	// processorsKept is how long they are kept after the last that computed: it bounds how
	// often the world stops for a change, some 20 µs each.
	processorsKept = 5 * time.Millisecond

	// processorsToCollect is how many there are while garbage is collected: the runtime marks on
	// each that is idle, so with more there would be more threads that redirects share a core with.
	processorsToCollect = 2
)

// processors lends the process more of Go's Ps than the machine has, while something
// computes for long. It does not keep them, because a redirect costs 8 % more CPU with
// three on one core: threads look for work that is not there (docs/decisions/0012).
type processors struct {
	working atomic.Int32
	needed  chan struct{} // somebody began while nobody worked
	few     chan func()   // what Run does with few of them
	done    func()        // set once: a method value for each caller would be garbage
}

func newProcessors() *processors {
	p := &processors{needed: make(chan struct{}, 1), few: make(chan func())}
	p.done = func() { p.working.Add(-1) }
	return p
}

// work says that the caller computes until it calls done. It does not wait for the
// processors: they come when the collector of garbage lets them.
func (p *processors) work() (done func()) {
	if p.working.Add(1) == 1 {
		select {
		case p.needed <- struct{}{}:
		default:
		}
		runtime.Gosched() // Run is next, even on a single P
	}
	return p.done
}

// collect runs f, which collects garbage, with processors for it: few, or those that are lent.
func (p *processors) collect(f func()) {
	done := make(chan struct{})
	select {
	case p.few <- func() { defer close(done); f() }:
		<-done
	default: // Run lends, or has ended
		f()
	}
}

// Run lends until ctx ends, then returns nil.
func (p *processors) Run(ctx context.Context) error {
	own := runtime.GOMAXPROCS(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.needed:
		case f := <-p.few:
			runtime.GOMAXPROCS(max(own, processorsToCollect))
			f()
			runtime.GOMAXPROCS(own)
			continue
		}
		if own >= leastProcessors {
			continue
		}
		runtime.GOMAXPROCS(leastProcessors)
		p.untilIdle(ctx)
		runtime.GOMAXPROCS(own) // who begins meanwhile has said that it needs them
	}
}

// untilIdle returns when nobody worked at a tick, or when ctx ends.
func (p *processors) untilIdle(ctx context.Context) {
	tick := time.NewTicker(processorsKept)
	defer tick.Stop()
	for p.working.Load() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// during lends processors to what a handler does, but for answers that only wait for
// what there is to tell, for hours.
func (p *processors) during(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !httpapi.Streams(r) {
			defer p.work()()
		}
		next.ServeHTTP(w, r)
	})
}

// aside runs a loop on a thread of its own that stands back for all others.
func (s *Server) aside(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		s.standAside()
		return run(ctx)
	}
}

// onceAside runs work on a thread of its own that stands back for all others, and returns when
// it is done. A panic of it is the caller's.
func (s *Server) onceAside(work func()) {
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		s.standAside()
		work()
	}()
	if p := <-ended; p != nil {
		panic(p) // where somebody answers for it
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
