package server

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// slice is how long what counts computes on the only processor before it lets redirects in.
	// Some ten come meanwhile at half of what a core answers.
	slice = 200 * time.Microsecond

	// pauseLength is one look at who is there. In it a processor answers one or two.
	pauseLength = 20 * time.Microsecond
	// waiting is how many redirects in one pause had waited for it, so that there may be more.
	waiting = 3
	// maxPauses is how many times longer than it computed they are let in at the most: what counts
	// has a tenth of the processor however many come, or the click log would grow without end.
	maxPauses = 9
	// maxWorked is what counts as computed at the most.
	maxWorked = time.Millisecond
)

// pauses let redirects in where there is a single processor. What computes for long in the
// background calls rest, from any number of goroutines.
//
// Go looks at the network only when no goroutine is ready (runtime/proc.go, findRunnable), so
// runtime.Gosched lets nobody in, and a sleep only if nothing else computes: whoever rests waits
// for the network itself, where a clock is (clock_linux.go). runtime.Gosched behind that puts it
// at the end of the line. More processors than the machine has are no way out: they leave it to
// the kernel who is next, which gives everyone a share, and to the collector of garbage to wait
// for those that have none (docs/decisions/0012).
type pauses struct {
	recorded func() uint64 // redirects so far; set before the first rest
	began    time.Time
	ended    atomic.Int64 // when the last one did, in ns since began
	held     atomic.Int32 // by how many
	clocks   clocks
}

// newPauses returns nil where there is more than one processor.
func newPauses() *pauses {
	if runtime.GOMAXPROCS(0) > 1 {
		return nil
	}
	return &pauses{recorded: func() uint64 { return 0 }, began: time.Now()}
}

// hold makes all who rest wait until release is called.
func (p *pauses) hold() (release func()) {
	p.held.Add(1)
	return func() { p.held.Add(-1) }
}

// rest returns at once unless the slice is over; else when no redirect waits, or those that
// come have had their share.
func (p *pauses) rest() {
	for p.held.Load() > 0 {
		p.clocks.wait(slice)
	}
	begin := time.Since(p.began)
	worked := begin - time.Duration(p.ended.Load())
	if worked < slice {
		return
	}
	most := begin + maxPauses*min(worked, maxWorked)
	for before := p.recorded(); ; {
		p.clocks.wait(pauseLength)
		runtime.Gosched()
		now, after := time.Since(p.began), p.recorded()
		if after-before < waiting || now > most {
			p.ended.Store(int64(now))
			return
		}
		before = after
	}
}

// lent is what loops are given that may rest: a thread of their own that stands aside and more
// processors, or, where they rest, neither.
func (s *Server) lent() (aside func(), work func() (done func())) {
	if s.pauses != nil {
		return nil, nil
	}
	return s.standAside, s.processors.work
}

// undisturbed lends processors to what may wait for the disk. Where the machine has a single one,
// who rests is held meanwhile, so that redirects share it with nobody else.
func (s *Server) undisturbed() (done func()) {
	if s.pauses == nil {
		return s.processors.work()
	}
	returned, released := s.processors.work(), s.pauses.hold()
	return func() { released(); returned() }
}

// behind runs a loop that may rest.
func (s *Server) behind(run func(context.Context) error) func(context.Context) error {
	if s.pauses != nil {
		return run
	}
	return s.aside(run)
}

// rest is what the server's loops call between parts of what they compute; nil where there are
// processors for them.
func (s *Server) rest() func() {
	if s.pauses == nil {
		return nil
	}
	return s.pauses.rest
}
