// Package background lets redirects go first. Go's scheduler looks at the network only when no
// goroutine is ready, so that work that computes for long keeps visitors waiting. Such work takes
// a [Yielder] and uses one of three means:
//
//   - yield: on a single processor, it pauses every 50 to 300 µs until the redirects that are
//     ready have been answered (pauser.go);
//   - boost: while it computes, the process has more of Go's processors (booster.go), so that
//     one thread is always waiting for the network;
//   - low priority: its thread gets a tenth of what the kernel gives to other threads
//     (priority_linux.go). Long queries run on a few such threads, in a queue (queue.go).
//
// A [Pace] keeps indexers back during a burst of creates or redirects, a [Collector] decides when
// garbage is collected, and [FreeMemory] returns memory to the system behind a burst.
//
// The measurements are in docs/decisions/0012, 0018, 0031 and 0040. The first file to read is
// this one.
package background

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
)

// A Yielder schedules background work behind redirects. It is safe for many goroutines.
type Yielder interface {
	// Yields reports whether Yield may wait: there is a single processor.
	Yields() bool
	// Yield lets redirects in, if its caller and others have computed for 200 µs.
	Yield()
	// Boost lends the process more processors until done is called. It does not block.
	Boost() (done func())
	// LowerPriority lowers the priority of the calling goroutine, for the rest of its life.
	LowerPriority()
	// Queue runs a query of some milliseconds at low priority, after those that came before it,
	// and returns its error, or the cause of ctx's end if that comes before its turn. Queries
	// that it makes with its own context belong to it. A panic is passed on to the caller.
	Queue(ctx context.Context, query func(context.Context) error) error
}

// Inline is a Yielder that does nothing: work runs at once, where its caller is.
type Inline struct{}

// Yields implements Yielder.
func (Inline) Yields() bool { return false }

// Yield implements Yielder.
func (Inline) Yield() {}

// Boost implements Yielder.
func (Inline) Boost() (done func()) { return func() {} }

// LowerPriority implements Yielder.
func (Inline) LowerPriority() {}

// Queue implements Yielder.
func (Inline) Queue(ctx context.Context, query func(context.Context) error) error { return query(ctx) }

// Or returns y, or an Inline for nil.
func Or(y Yielder) Yielder { return cmp.Or[Yielder](y, Inline{}) }

// LowPriority returns run at low priority.
func LowPriority(y Yielder, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		y.LowerPriority()
		return run(ctx)
	}
}

// Isolate runs work on a goroutine of its own at low priority and returns when it is done. A
// panic is passed on to the caller.
func Isolate(y Yielder, work func()) {
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		y.LowerPriority()
		work()
	}()
	if p := <-ended; p != nil {
		panic(p)
	}
}

// Scheduler is the Yielder of a process, for work that never calls Yield. There is one in a
// process; [Scheduler.Run] lends processors and [Scheduler.RunQueue] runs queries.
type Scheduler struct {
	pauser  *pauser // nil = there is more than one processor
	booster *booster
	queue   *queue
	log     *slog.Logger
}

// New returns a Scheduler for the processors that there are now.
func New(log *slog.Logger) *Scheduler {
	return &Scheduler{pauser: newPauser(), booster: newBooster(), queue: newQueue(), log: log}
}

// Redirects sets the counter of redirects that yields follow. It must be called before the first
// Yield.
func (s *Scheduler) Redirects(count func() uint64) {
	if s.pauser != nil {
		s.pauser.redirects = count
	}
}

// Yields implements Yielder.
func (s *Scheduler) Yields() bool { return s.pauser != nil }

// Yield implements Yielder.
func (s *Scheduler) Yield() {
	if s.pauser != nil {
		s.pauser.yield()
	}
}

// Boost implements Yielder.
func (s *Scheduler) Boost() (done func()) { return s.booster.boost() }

// LowerPriority implements Yielder. The goroutine gets a thread of its own.
func (s *Scheduler) LowerPriority() {
	runtime.LockOSThread() // never undone: the thread ends with its goroutine
	if err := lowerPriority(); err != nil {
		runtime.UnlockOSThread()
		s.log.WarnContext(context.Background(), "cannot lower the priority of background work, it may delay redirects", slog.Any("err", err))
	}
}

// Queue implements Yielder. Before RunQueue begins and after it ends, the caller runs the query.
func (s *Scheduler) Queue(ctx context.Context, query func(context.Context) error) error {
	return s.queue.do(ctx, query)
}

// Run lends processors until ctx ends, then returns nil.
func (s *Scheduler) Run(ctx context.Context) error { return s.booster.Run(ctx) }

// RunQueue runs queries until ctx ends, then returns nil.
func (s *Scheduler) RunQueue(ctx context.Context) error { return s.queue.run(ctx, s.LowerPriority) }

// Close closes the timers of yields.
func (s *Scheduler) Close() error {
	if s.pauser == nil {
		return nil
	}
	return s.pauser.timers.close()
}

// Sliced returns the Yielder for work that calls Yield every 300 µs at the latest. On a single
// processor that is enough, and it is neither boosted nor put at low priority.
func (s *Scheduler) Sliced() Yielder { return sliced{s} }

type sliced struct{ *Scheduler }

func (s sliced) Boost() (done func()) {
	if s.Yields() {
		return func() {}
	}
	return s.Scheduler.Boost()
}

func (s sliced) LowerPriority() {
	if !s.Yields() {
		s.Scheduler.LowerPriority()
	}
}

// Blocking returns the Yielder for work that is boosted while it waits for the disk. On a single
// processor, work that yields is held meanwhile, so that redirects share the boost with nothing
// else.
func (s *Scheduler) Blocking() Yielder { return blocking{s} }

type blocking struct{ *Scheduler }

func (b blocking) Boost() (done func()) {
	unboost := b.Scheduler.Boost()
	if b.pauser == nil {
		return unboost
	}
	release := b.pauser.hold()
	return func() { release(); unboost() }
}

// ShortenSlices lets redirects preempt other processes sooner: it shortens the kernel's time
// slices of all threads, now and later, but for those at low priority.
func ShortenSlices() error { return shortenSlices() }
