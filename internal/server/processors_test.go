package server

import (
	"context"
	"runtime"
	"testing"
	"time"
)

func TestProcessorsAreLentWhileSomethingComputes(t *testing.T) {
	p := lending(t, 1)
	for range 3 { // a loan that ended is given again
		first := p.work()
		second := p.work()
		await(t, leastProcessors)
		first()
		time.Sleep(3 * processorsKept) // that nothing changes has no event
		if n := runtime.GOMAXPROCS(0); n != leastProcessors {
			t.Fatalf("GOMAXPROCS is %d while one still works, want %d", n, leastProcessors)
		}
		second()
		await(t, 1)
	}
}

func TestNothingIsLentToAMachineThatHasEnough(t *testing.T) {
	p := lending(t, 5)
	done := p.work()
	time.Sleep(3 * processorsKept)
	if n := runtime.GOMAXPROCS(0); n != 5 {
		t.Errorf("GOMAXPROCS is %d, want 5 as before", n)
	}
	done()
}

func TestAnEndGivesBackWhatIsLent(t *testing.T) {
	p, stop := lent(t, 1)
	p.work() // and never ends
	await(t, leastProcessors)
	stop()
	await(t, 1)
}

// lending runs processors on a process that has n, until the test ends.
func lending(t *testing.T, n int) *processors {
	t.Helper()
	p, stop := lent(t, n)
	t.Cleanup(stop)
	return p
}

func lent(t *testing.T, n int) (p *processors, stop func()) {
	t.Helper()
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	ctx, cancel := context.WithCancel(t.Context())
	p = newProcessors()
	ended, ready := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		close(ready)
		_ = p.Run(ctx)
	}()
	<-ready
	return p, func() { cancel(); <-ended }
}

// await waits until the process has n processors.
func await(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); runtime.GOMAXPROCS(0) != n; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("GOMAXPROCS is %d, want %d", runtime.GOMAXPROCS(0), n)
		}
	}
}
