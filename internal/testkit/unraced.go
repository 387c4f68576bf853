package testkit

import "testing"

// Unraced is the first line of a test that shows nothing about races and takes many times
// longer under their detector: requests one after the other, memory measured, statistics of
// codes. `make test` runs such tests without it: test/run finds them by this call.
func Unraced(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("runs without the race detector")
	}
}
