package background

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// slice is how long background work computes on the only processor before it yields. Some ten
	// redirects arrive meanwhile at half of what a core answers.
	slice = 200 * time.Microsecond

	// pauseLength is one look at the counter of redirects. A processor answers one or two in it.
	pauseLength = 20 * time.Microsecond
	// backlog is how many redirects in one pause had been waiting for it, so that there may be more.
	backlog = 3
	// maxPauses bounds a yield, as a multiple of the time computed before it: background work keeps
	// a tenth of the processor under any load, or the click log would grow without end.
	maxPauses = 9
	// maxWorked is the most that counts as computed.
	maxWorked = time.Millisecond
)

// pauser lets redirects in where there is a single processor.
//
// Go looks at the network only when no goroutine is ready (runtime/proc.go, findRunnable), so
// that runtime.Gosched lets no redirect in, and a sleep only if nothing else computes. A yield
// therefore waits in the network poller itself (timer_linux.go); the runtime.Gosched behind it
// puts it at the end of the run queue. More Ps than processors are no way out: they leave the
// order to the kernel, which gives every thread a share, and the collector of garbage has to wait
// for threads without one (docs/decisions/0012).
type pauser struct {
	redirects func() uint64 // answered so far; set before the first yield
	began     time.Time
	ended     atomic.Int64 // end of the last yield, in ns since began
	held      atomic.Int32 // by how many
	timers    timers
}

// newPauser returns nil where there is more than one processor.
func newPauser() *pauser {
	if runtime.GOMAXPROCS(0) > 1 {
		return nil
	}
	return &pauser{redirects: func() uint64 { return 0 }, began: time.Now()}
}

// hold keeps all yields from ending until release is called.
func (p *pauser) hold() (release func()) {
	p.held.Add(1)
	return func() { p.held.Add(-1) }
}

// yield returns at once within a slice; otherwise when no redirect is waiting, or when those that
// arrive have had their share.
func (p *pauser) yield() {
	for p.held.Load() > 0 {
		p.timers.wait(slice)
	}
	begin := time.Since(p.began)
	worked := begin - time.Duration(p.ended.Load())
	if worked < slice {
		return
	}
	most := begin + maxPauses*min(worked, maxWorked)
	for before := p.redirects(); ; {
		p.timers.wait(pauseLength)
		runtime.Gosched()
		now, after := time.Since(p.began), p.redirects()
		if after-before < backlog || now > most {
			p.ended.Store(int64(now))
			return
		}
		before = after
	}
}
