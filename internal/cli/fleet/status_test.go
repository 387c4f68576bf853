package fleet

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/backend/postgres/pgdb"
)

// A server is as its health says, and warns of what its metrics show.
func TestServerIsReadFromItsAdminListener(t *testing.T) {
	const build = "curt_build_info{version=\"v1\"} 1\n"
	for name, tt := range map[string]struct {
		ready, metrics string
		want           part
	}{
		"well": {
			`{"status":"ok","role":["api"],"checks":{"links":{"status":"ok","required":true}}}`, build + "curt_events_unsent_seconds 1.2\n",
			part{Role: "api", Version: "v1", Lag: "1s", State: ok},
		},
		"a worker": {
			`{"status":"ok","role":["worker"]}`, build + "curt_worker_lag_events 33\n",
			part{Role: "worker", Version: "v1", Lag: "33 clicks", State: ok},
		},
		"without what it can do without": {
			`{"status":"ok","role":["redirect"],"checks":{"redis":{"status":"unavailable"}}}`, build,
			part{Role: "redirect", Version: "v1", State: warning, Wrong: []string{"redis unavailable"}},
		},
		"not ready": {
			`{"status":"unavailable","role":["redirect","api"],"checks":{"tables":{"status":"unavailable","required":true,"detail":"missing: SELECT on links"}}}`, build,
			part{Role: "redirect,api", Version: "v1", State: failure, Wrong: []string{"not ready: unavailable", "tables unavailable missing: SELECT on links"}},
		},
		"clicks are lost": {
			`{"status":"ok","role":["redirect"]}`, build + "curt_events_unsent_seconds 61\ncurt_clicks_dropped_total 2\n",
			part{Role: "redirect", Version: "v1", Lag: "1m1s", State: warning, Wrong: []string{"clicks were not sent for 1m1s", "2 clicks were dropped"}},
		},
		"keys run out": {
			`{"status":"ok","role":["keys"]}`, build + "curt_key_pool_keys 4000\ncurt_key_pool_runway_seconds 4.2\n",
			part{Role: "keys", Version: "v1", State: warning, Wrong: []string{"the pool of keys lasts 4s"}},
		},
		"keys that nobody uses": {
			`{"status":"ok","role":["keys"]}`, build + "curt_key_pool_runway_seconds +Inf\n", part{Role: "keys", Version: "v1", State: ok},
		},
		"a pool that cannot be read": {
			`{"status":"ok","role":["keys"]}`, build + "curt_key_pool_runway_seconds NaN\n", part{Role: "keys", Version: "v1", State: ok},
		},
		"another program": {"<html>", "", part{State: failure, Wrong: []string{"/readyz answers 200: not a curt server"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text := tt.metrics
				if r.URL.Path == "/readyz" {
					text = tt.ready
				}
				_, _ = fmt.Fprint(w, text)
			}))
			defer s.Close()
			tt.want.Part, tt.want.Address = "server", strings.TrimPrefix(s.URL, "http://")
			if got := intime(func() []part { return []part{server(t.Context(), tt.want.Address)} })[0]; fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	if p := server(t.Context(), "127.0.0.1:1"); p.State != failure || !slices.Equal(p.Wrong, []string{"refuses connections"}) {
		t.Errorf("a server that is down: %+v", p)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	if p := server(late, "127.0.0.1:1"); !slices.Equal(p.Wrong, []string{"timed out"}) {
		t.Errorf("a server that is late: %+v", p)
	}
}

func TestCommitsReturnWithAStandbyThatConfirms(t *testing.T) {
	for _, tt := range []struct {
		names    string
		standbys []pgdb.Standby
		want     bool
	}{
		{"", nil, true},
		{"standby", nil, false},
		{"standby", []pgdb.Standby{{State: "streaming", Sync: "async"}}, false},
		{"standby", []pgdb.Standby{{State: "catchup", Sync: "sync"}}, false},
		{"standby", []pgdb.Standby{{State: "streaming", Sync: "async"}, {State: "streaming", Sync: "sync"}}, true},
		{"ANY 1 (a, b)", []pgdb.Standby{{State: "streaming", Sync: "quorum"}}, true},
		{"standby", []pgdb.Standby{{}}, true}, // which the role may not see
	} {
		if got := (pgdb.Replication{Synchronous: tt.names, Standbys: tt.standbys}).Confirmed(); got != tt.want {
			t.Errorf("%q with %+v: %v", tt.names, tt.standbys, got)
		}
	}
}

func TestHostsOfURLs(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://u:p%40@a:1,b:2/db?x=y@z": "a:1,b:2", "redis://c:3?addr=d:4": "c:3", "kafka://k": "k",
	} {
		if got := hostsOf(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
