package postgres_test

import (
	"net/http"
	"testing"
	"time"
)

// TestServersWithoutRedisShareLimits has a workspace spend a plan at two servers, and a creator be
// too fast at both together.
func TestServersWithoutRedisShareLimits(t *testing.T) {
	t.Parallel()
	creates := func(n node, tries int) (created int) {
		t.Helper()
		c := n.MustDial(t)
		defer c.Close()
		for range tries {
			_, a, err := c.Create("https://example.com/")
			switch {
			case err != nil && a.Status == 0:
				t.Fatal(err)
			case a.Status == http.StatusCreated:
				created++
			}
		}
		return created
	}
	for name, env := range map[string][]string{
		"plan": {"CURT_LIMITS=default=50/d"}, "velocity": {"CURT_LIMITS=default=off", "CURT_WEIGHTS=velocity=90"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := begin(t, 2, database(t), env...)
			if n := creates(nodes[0], 40); n != 40 {
				t.Fatalf("%d of 40 creates are answered 201", n)
			}
			if n := creates(nodes[1], 2); n != 2 {
				t.Fatalf("%d of 2 creates are answered 201", n)
			}
			time.Sleep(2 * time.Second) // within which servers know of each other's creates
			if n := creates(nodes[1], 30); n < 6 || n > 8 {
				t.Errorf("%d more creates at the other server, want the 8 that are left", n)
			}
			time.Sleep(2 * time.Second)
			first := creates(nodes[0], 1) // of velocity, a server learns by what it sees itself
			time.Sleep(time.Second)
			if n := creates(nodes[0], 5); n != 0 || first > 0 && name == "plan" {
				t.Errorf("%d and %d more creates at the first server, want none", first, n)
			}
		})
	}
}
