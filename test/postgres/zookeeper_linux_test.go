package postgres_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// counted returns a metric of a server.
func counted(t *testing.T, s *curttest.Server, name string) float64 {
	t.Helper()
	v, found, err := s.Metric(t.Context(), name)
	if err != nil || !found {
		t.Fatalf("%s: found %t, %v", name, found, err)
	}
	return v
}

// zkPause between the creates of a client leaves four of them with the ids that a server has leased ahead for a minute, which is
// more than ZooKeeper needs to start.
const zkPause = 50 * time.Millisecond

// awaitZooKeeper returns what waits until a server is connected to ZooKeeper.
func awaitZooKeeper(t *testing.T) func(*curttest.Server) {
	t.Helper()
	return func(s *curttest.Server) {
		t.Helper()
		figure(t, s, "curt_zookeeper_up", func(up float64) bool { return up == 1 })
	}
}

// TestServersLeaseInZooKeeper has three servers lease ids in a ZooKeeper that is killed meanwhile, and comes back without its
// state: no code is issued twice, and no create fails.
func TestServersLeaseInZooKeeper(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	a := testkit.NewAuthority(t)
	certificate, key := a.Pair(t, t.TempDir(), "both")
	for name, start := range map[string]func(t *testing.T) (server *testkit.ZooKeeper, query string){
		"range": func(t *testing.T) (*testkit.ZooKeeper, string) { return testkit.StartZooKeeper(t), "" },
		"range over TLS": func(t *testing.T) (*testkit.ZooKeeper, string) {
			files := testkit.ZooKeeperTLS{Certificate: certificate, Key: key, Authority: a.File, Mutual: true}
			return testkit.StartSecureZooKeeper(t, files).Secure, "?ca=" + a.File + "&cert=" + certificate + "&key=" + key
		},
		"snowflake": func(t *testing.T) (*testkit.ZooKeeper, string) { return testkit.StartZooKeeper(t), "" },
	} {
		t.Run(name, func(t *testing.T) {
			server, query := start(t)
			strategy, _, _ := strings.Cut(name, " ")
			url := database(t)
			running := createThroughServers(t, url, throughServers{zkPause, awaitZooKeeper(t), func() {
				server.Kill(t)
				if err := os.RemoveAll(filepath.Join(server.Dir, "data")); err != nil {
					t.Fatal(err)
				}
				// Leases alone must not bring ZooKeeper level with the link store, which they would if it were ahead by no
				// more than three servers lease at once.
				if err := change(t, url, "UPDATE leases SET next = next + 100000 WHERE counter LIKE 'codes-%'"); err != nil {
					t.Fatal(err)
				}
				server.Again(t)
			}}, "CURT_CODES="+strategy, "CURT_IDS="+server.URL("/curt")+query)
			for _, s := range running {
				awaitZooKeeper(t)(s)
			}
			if strategy != "range" {
				return
			}
			// Whichever server leases first moves it, and none has to again: no lease from before is above the link store.
			soon(t, "one of the servers moved ZooKeeper, once", func() bool {
				behind := 0.0
				for _, s := range running {
					behind += counted(t, s, "curt_id_leases_behind_total")
				}
				return behind == 1
			})
		})
	}
}

// Without ZooKeeper links are followed, also by a server that starts then. Creates go on with what was leased ahead; where
// nothing was, they are refused until ZooKeeper is back.
func TestWithoutZooKeeper(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	server := testkit.StartZooKeeper(t)
	url, ids := database(t), "CURT_IDS="+server.URL("/curt")
	one := begin(t, 1, url, ids)[0]
	awaitZooKeeper(t)(one.Server)
	created, err := one.api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/before"})
	if err != nil {
		t.Fatal(err)
	}
	server.Kill(t)
	if _, err := one.api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/ahead"}); err != nil {
		t.Errorf("a create with an id that was leased ahead: %v", err)
	}
	two := begin(t, 1, url, ids)[0]
	for _, n := range []node{one, two} {
		if status, _ := n.answers(t, "/"+created.ShortCode); status != http.StatusFound {
			t.Errorf("a link without ZooKeeper is %d", status)
		}
		if status, err := curttest.Probe(t.Context(), n.Admin, "/readyz"); err != nil || status != http.StatusOK {
			t.Errorf("/readyz without ZooKeeper: %d, %v", status, err)
		}
		soon(t, "curt_zookeeper_up 0", func() bool { return counted(t, n.Server, "curt_zookeeper_up") == 0 })
	}
	if l, err := two.api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/none"}); err == nil {
		t.Errorf("a server without leases created %s", l.ShortCode)
	}
	server.Again(t)
	soon(t, "creates with ZooKeeper again", func() bool {
		_, err := two.api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/after"})
		return err == nil
	})
}
