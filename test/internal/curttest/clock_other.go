//go:build !(linux && amd64)

package curttest

import (
	"testing"
	"time"
)

// SetClock ends the test by Need: only for one platform it is known how.
func (s *Server) SetClock(t testing.TB, _ time.Duration) {
	t.Helper()
	Need(t, "Linux on amd64, where the clock of one process can be set")
}
