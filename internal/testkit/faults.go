package testkit

import (
	"os"
	"testing"
)

// faultsEnv asks for the long proofs (make test-faults).
const faultsEnv = "CURT_TEST_FAULTS"

// Faults is the first line of a long proof: a test with kills, power cuts, chaos, long
// histories, releases or long browser sessions. `make test` leaves such tests out and
// `make test-faults` runs them: test/run finds them by this call.
func Faults(t testing.TB) {
	t.Helper()
	if os.Getenv(faultsEnv) == "" {
		t.Skip("part of make test-faults: set " + faultsEnv + "=1")
	}
}
