package background

import (
	"context"
	"runtime"
	"testing"
	"time"
)

func TestABoostLastsWhileWorkComputes(t *testing.T) {
	p := boosting(t, 1)
	for range 3 { // a boost that ended begins anew
		first := p.boost()
		second := p.boost()
		await(t, boosted)
		first()
		time.Sleep(3 * boostKept) // that nothing changes has no event
		if n := runtime.GOMAXPROCS(0); n != boosted {
			t.Fatalf("GOMAXPROCS is %d while one still computes, want %d", n, boosted)
		}
		second()
		await(t, 1)
	}
}

func TestAMachineWithEnoughProcessorsIsNotBoosted(t *testing.T) {
	p := boosting(t, 5)
	done := p.boost()
	time.Sleep(3 * boostKept)
	if n := runtime.GOMAXPROCS(0); n != 5 {
		t.Errorf("GOMAXPROCS is %d, want 5 as before", n)
	}
	done()
}

func TestAnEndTakesTheBoostBack(t *testing.T) {
	p, stop := startBooster(t, 1)
	p.boost() // and never ends
	await(t, boosted)
	stop()
	await(t, 1)
}

// boosting runs a booster on a process with n processors, until the test ends.
func boosting(t *testing.T, n int) *booster {
	t.Helper()
	p, stop := startBooster(t, n)
	t.Cleanup(stop)
	return p
}

func startBooster(t *testing.T, n int) (p *booster, stop func()) {
	t.Helper()
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	ctx, cancel := context.WithCancel(t.Context())
	p = newBooster()
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
