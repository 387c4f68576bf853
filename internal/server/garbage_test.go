package server

import (
	"runtime/debug"
	"testing"
)

func TestOperatorsGOGCIsKept(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "100")
	collectSooner()
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("the percentage is %d with GOGC=100", got)
	}
	t.Setenv("GOGC", "")
	collectSooner()
	if got := debug.SetGCPercent(100); got != gcPercent {
		t.Errorf("the percentage is %d without GOGC, want %d", got, gcPercent)
	}
}
