package main

import (
	"os"
	"strings"
	"testing"
)

// faultsEnv asks for the long proofs; a test that begins with testkit.Faults drops it.
const faultsEnv = "CURT_TEST_FAULTS"

// TestMain drops the variables of whoever runs the tests: the server refuses those
// that are for the tests alone, as CURT_BIN.
func TestMain(m *testing.M) {
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "CURT_") && name != faultsEnv {
			_ = os.Unsetenv(name) // it was there a moment ago
		}
	}
	m.Run()
}
