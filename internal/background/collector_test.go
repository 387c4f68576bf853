package background

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// percent is what is set, which stays so.
func percent() int {
	now := debug.SetGCPercent(100)
	debug.SetGCPercent(now)
	return now
}

func TestOperatorsGOGCIsKept(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "100")
	if c := newCollector(nil, nil); c.percent != 0 || percent() != 100 {
		t.Errorf("the percentage is %d with GOGC=100", percent())
	}
	t.Setenv("GOGC", "")
	if newCollector(nil, nil); percent() != gcPercent {
		t.Errorf("the percentage is %d without GOGC, want %d", percent(), gcPercent)
	}
}

// TestLittleInUseMayHaveMoreGarbage: however little is in use, the collector does not run
// for each few hundred creates; where much is, it runs as before.
func TestLittleInUseMayHaveMoreGarbage(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "")
	c := newCollector(nil, nil)
	for _, step := range []struct {
		live uint64
		want int
	}{
		{0, gcPercent}, // nothing was collected yet
		{10 << 20, 120},
		{11 << 20, 120}, // not worth a stop of the world
		{1 << 20, 400},
		{16 << 20, 75},
		{200 << 20, gcPercent},
		{20 << 20, gcPercent}, // 60
	} {
		if c.adjust(step.live); percent() != step.want {
			t.Errorf("with %d MiB in use it is %d, want %d", step.live>>20, percent(), step.want)
		}
	}
	runtime.GC()
	if live, _ := heap(); live < 100<<10 || live > 1<<30 {
		t.Errorf("in use are %d bytes", live)
	}
}
