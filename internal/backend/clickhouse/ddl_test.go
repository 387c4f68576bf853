package clickhouse_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/clickhouse"
)

var update = flag.Bool("update", false, "write testdata/replicated.sql anew")

// What replicated servers are told cannot be run here: the server of the tests has no
// replication. That it is what was looked at is all that this shows.
func TestReplicatedTables(t *testing.T) {
	all, err := clickhouse.Statements("00001_clicks.sql", &clickhouse.Replicas{Cluster: "main"})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(all, ";\n\n") + ";\n"
	const golden = "testdata/replicated.sql"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-update writes it anew): %s", golden, d)
	}
	for _, engine := range []string{"= MergeTree", "= AggregatingMergeTree", "non_replicated"} {
		if strings.Contains(got, engine) {
			t.Errorf("a replicated table has %q", engine)
		}
	}
}
