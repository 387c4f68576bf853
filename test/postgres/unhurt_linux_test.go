package postgres_test

import (
	"math"
	"slices"
	"testing"
	"time"
)

// unhurt fails unless visitors of links in memory notice nothing, and creates are answered
// by 201 or 503.
func unhurt(t *testing.T, healthy, during phase) {
	t.Helper()
	t.Logf("healthy: %d visits, p99 %s, %d creates; during the fault: %d visits, p99 %s, %d creates, %d refused, slowest %s",
		healthy.hits, p99(healthy.took), healthy.made, during.hits, p99(during.took), during.made, during.refused, during.slowest)
	if healthy.bad+during.bad > 0 {
		t.Errorf("of %d visits of links in memory %d failed", during.hits, during.bad)
	}
	for _, one := range during.other {
		t.Errorf("a create was answered %d after %s: %s", one.status, one.took, one.said)
	}
}

// asQuick fails unless the 99th percentile of visits during a fault is at most three times
// what it is without one: before the fault, or at the same time at the server beside, which
// shares the machine and knows nothing of the fault, whichever is more. Who waited for the
// database would be a hundred times slower; what a machine does to one server and not to the one
// beside is less, and 1.2 times too little for it on a busy one. Of some hundred visits one
// more or less moves a percentile by far: counted are those above the bound, and one of
// a hundred, and what chance adds to that, may be. A bound below timeSlice says nothing about the database.
func asQuick(t *testing.T, healthy, during phase) {
	t.Helper()
	well := slices.Sorted(slices.Values(slices.Concat(healthy.took, healthy.beside, during.beside)))
	bound := max(3*max(p99(well), p99(during.beside)), timeSlice)
	above, _ := slices.BinarySearch(during.took, bound+1)
	above = len(during.took) - above
	expected := float64(len(during.took)) / 100
	most := int(expected + 4*math.Sqrt(expected))
	t.Logf("by three times the 99th percentile without the fault, at least %s, the bound is %s: %d visits took longer, at most %d may; beside it was %s",
		timeSlice, bound, above, most, p99(during.beside))
	if above > most {
		t.Errorf("%d of %d visits took longer than %s", above, len(during.took), bound)
	}
}

// timeSlice is what the kernel may leave a processor to another process for. On an idle machine visits take some hundred
// microseconds, and what the fault gives other processes to do makes some of them wait that long.
const timeSlice = 5 * time.Millisecond

func p99(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)*99/100]
}
