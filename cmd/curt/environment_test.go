package main

import (
	"os"
	"strings"
	"testing"
)

// TestMain drops the variables of whoever runs the tests: the server refuses those
// that are for the tests alone, as CURT_BIN.
func TestMain(m *testing.M) {
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "CURT_") {
			_ = os.Unsetenv(name) // it was there a moment ago
		}
	}
	m.Run()
}
