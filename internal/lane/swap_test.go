package lane_test

import (
	"testing"

	"curt/internal/hosts"
	"curt/internal/hosts/hoststest"
)

// TestHostsAreSwappedUnderAConnection: a connection of the lane keeps the place of its host only
// as long as the table is the same.
func TestHostsAreSwappedUnderAConnection(t *testing.T) {
	strict := hoststest.Of(t, hosts.Config{Host: "other.example", Strict: true})
	named := hosts.NewCurrent(strict.Load())
	r := start(t, true, func(s *setup) { s.links.Hosts = named })
	nc := r.dial(t)
	for _, step := range []struct {
		table *hosts.Table
		want  int
	}{{strict.Load(), 404}, {hoststest.Of(t, hosts.Config{Host: "links.example", Strict: true}).Load(), 302}, {strict.Load(), 404}} {
		named.Swap(step.table)
		for range 2 {
			if a := roundTrip(t, nc, live); a.StatusCode != step.want {
				t.Fatalf("%d, want %d", a.StatusCode, step.want)
			}
		}
	}
}
