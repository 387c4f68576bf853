//go:build race

package testkit

// race reports whether the race detector is part of the test.
const race = true
