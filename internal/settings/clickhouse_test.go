package settings

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"curt/internal/backend/clickhouse"
	"curt/internal/background"
	"curt/internal/config"
	"curt/internal/testkit"
)

// TestReplicasAreChecked: config check knows the rules of several ClickHouse servers, and does not take one that
// is down for one that is set wrongly.
func TestReplicasAreChecked(t *testing.T) {
	server := testkit.StartClickHouse(t)
	open := func(position int) string {
		url := server.URL(server.Database(t))
		store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url, Position: position})
		if err == nil {
			err = store.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return url
	}
	fed, first, second := open(0), open(1), open(2)
	down, dead := "clickhouse://anna:s3cret@127.0.0.1:"+testkit.FreePort(t)+"/curt", "clickhouse://127.0.0.1:"+testkit.FreePort(t)+"/curt"
	twin := strings.Replace(first, "127.0.0.1", "localhost", 1)
	if _, err := net.LookupHost("localhost"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		urls []string
		want []string // of each: how the line begins, and what it contains
	}{
		{"all is well", []string{first, second}, []string{"ok tables present", "ok tables present"}},
		{"the one that was fed alone is first", []string{fed, second}, []string{"ok tables present", "ok tables present"}},
		{"the one that was fed alone is second", []string{second, fed}, []string{"ok tables present", "wrong name it first in CURT_ANALYTICS"}},
		{"one is down", []string{first, down}, []string{"ok tables present", "warn connection refused"}},
		{"the first is down", []string{down, first}, []string{"warn connection refused", "ok tables present"}},
		{"all are down", []string{down, dead}, []string{"wrong connection refused", "wrong connection refused"}},
		{"the only one is down", []string{down}, []string{"wrong connection refused"}},
		{"one has two names", []string{first, second, twin}, []string{"ok ", "ok ", "wrong is the same database as 127.0.0.1"}},
		{"one is not filled, and alone", []string{second}, []string{"warn name the replica that is complete first"}},
		{"the only one is complete", []string{fed}, []string{"ok tables present"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config.Config{Analytics: strings.Join(c.urls, ",")}
			r := newReader(cfg, slog.New(slog.DiscardHandler), background.Inline{})
			r.clickHouse(t.Context(), cfg)
			if len(r.findings) != len(c.want) {
				t.Fatalf("%d findings, want %d: %v", len(r.findings), len(c.want), r.findings)
			}
			for i, f := range r.findings {
				got := "ok " + f.What
				switch {
				case f.Err != nil:
					got = "wrong " + f.Err.Error()
				case f.Advice != "":
					got = "warn " + f.What + ": " + f.Advice
				}
				kind, text, _ := strings.Cut(c.want[i], " ")
				if !strings.HasPrefix(got, kind+" ") || !strings.Contains(got, text) || strings.Contains(got, "s3cret") || strings.Contains(got, "\n") {
					t.Errorf("%d: %s; want %s", i+1, got, c.want[i])
				}
			}
		})
	}
}
