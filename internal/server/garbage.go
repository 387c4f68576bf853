package server

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much garbage there may be for what is in use. A redirect makes
// none; what counts clicks makes some, beside links that stay. Go's own 100 would let
// the process grow to twice what it needs (docs/decisions/0018).
const gcPercent = 50

// collectSooner applies gcPercent to the process, unless GOGC in the environment says
// what the operator wants.
func collectSooner() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
