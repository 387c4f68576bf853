package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"curt.example/client"
)

// TestOneServerJudgesAgain: of two servers that would judge links again, one does, and when that
// is killed the other goes on.
func TestOneServerJudgesAgain(t *testing.T) {
	t.Parallel()
	nodes := begin(t, 2, database(t), "CURT_RECHECK=1s")
	if _, err := nodes[0].api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/"}); err != nil {
		t.Fatal(err)
	}
	judged := func(n node) float64 {
		value, _, err := n.Metric(t.Context(), "curt_links_rechecked_total")
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	eventually(t, "a link is judged again, and again", func() bool { return judged(nodes[0])+judged(nodes[1]) >= 3 })
	first, second := nodes[0], nodes[1]
	if judged(first) == 0 {
		first, second = second, first
	}
	if n := judged(second); n != 0 { // only if a busy machine stopped the first one for longer than its lease lasts
		soon(t, fmt.Sprintf("a lost lease, as the other server has judged %v links, too", n), func() bool {
			return strings.Contains(first.Log()+second.Log(), "lost a job lease to another server")
		})
	}
	first.Kill()
	eventually(t, "the other server goes on", func() bool { return judged(second) >= 2 })
}
