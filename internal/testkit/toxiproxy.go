package testkit

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Toxiproxy stands before a PostgreSQL server and spoils its connections on request. Its
// URLs lead through it.
type Toxiproxy struct {
	*Postgres
	toxics
}

// StartToxiproxy puts Toxiproxy before a server.
func StartToxiproxy(t testing.TB, server *Postgres) *Toxiproxy {
	t.Helper()
	x, listen, pid := startToxics(t, server.port(t))
	return &Toxiproxy{&Postgres{Pid: pid, address: listen}, x}
}

// SpoiledRedis is a Redis server behind Toxiproxy.
type SpoiledRedis struct {
	*Redis
	toxics
}

// SpoilRedis puts Toxiproxy before a server; what it returns has the address of Toxiproxy.
func SpoilRedis(t testing.TB, server *Redis) *SpoiledRedis {
	t.Helper()
	_, port, err := net.SplitHostPort(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	x, listen, pid := startToxics(t, port)
	return &SpoiledRedis{&Redis{Address: listen, Pid: pid}, x}
}

// SpoiledClickHouse is a ClickHouse server behind Toxiproxy: what speaks its own protocol comes
// through it, what speaks HTTP goes past it.
type SpoiledClickHouse struct {
	*ClickHouse
	toxics
}

// SpoilClickHouse puts Toxiproxy before a server; the URLs of what it returns have the address
// of Toxiproxy.
func SpoilClickHouse(t testing.TB, server *ClickHouse) *SpoiledClickHouse {
	t.Helper()
	_, port, err := net.SplitHostPort(server.tcp)
	if err != nil {
		t.Fatal(err)
	}
	x, listen, _ := startToxics(t, port)
	return &SpoiledClickHouse{&ClickHouse{service: server.service, tcp: listen, http: server.http}, x}
}

// SpoiledZooKeeper is a ZooKeeper server behind Toxiproxy.
type SpoiledZooKeeper struct {
	*ZooKeeper
	toxics
}

// SpoilZooKeeper puts Toxiproxy before a server; what it returns has the address of Toxiproxy.
func SpoilZooKeeper(t testing.TB, server *ZooKeeper) *SpoiledZooKeeper {
	t.Helper()
	_, port, err := net.SplitHostPort(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	x, listen, _ := startToxics(t, port)
	return &SpoiledZooKeeper{&ZooKeeper{Address: listen, service: server.service}, x}
}

// toxics are asked for at the API of a Toxiproxy that stands before one server.
type toxics struct{ api string }

func startToxics(t testing.TB, port string) (x toxics, listen string, pid int) {
	t.Helper()
	dir, own := filepath.Join(os.TempDir(), "curt-toxiproxy-"+rand.Text()), FreePort(t)
	x = toxics{"http://127.0.0.1:" + own + "/proxies"}
	pid = start(t, "toxiproxy", dir, own, port)
	var proxies map[string]struct{ Listen string }
	x.call(t, http.MethodGet, "", nil, &proxies)
	return x, proxies["server"].Listen, pid
}

// Slow lets what the server says arrive later by d; 0 ends it. The delay is set to zero then, not
// taken away: Toxiproxy gives each piece of what it holds five seconds to be taken before it takes
// a toxic away, and its API answers 503 after 25 (toxiproxy 2.5, link.go:RemoveToxic).
func (x toxics) Slow(t testing.TB, d time.Duration) {
	t.Helper()
	attributes := map[string]any{"latency": d.Milliseconds()}
	if x.ask(t, http.MethodPost, "/server/toxics/slow", map[string]any{"attributes": attributes}, nil) == http.StatusNotFound {
		x.call(t, http.MethodPost, "/server/toxics", map[string]any{"name": "slow", "type": "latency", "attributes": attributes}, nil)
	}
}

// Silent drops what goes either way, old connections and new ones staying half open, until
// it is ended: then they are closed.
func (x toxics) Silent(t testing.TB, on bool) {
	t.Helper()
	for _, way := range []string{"upstream", "downstream"} {
		if on {
			x.call(t, http.MethodPost, "/server/toxics", map[string]any{
				"name": "silent-" + way, "type": "timeout", "stream": way, "attributes": map[string]any{"timeout": 0},
			}, nil)
		} else {
			x.call(t, http.MethodDelete, "/server/toxics/silent-"+way, nil, nil)
		}
	}
}

// Refuse closes all connections and takes no more, until it is ended.
func (x toxics) Refuse(t testing.TB, on bool) {
	t.Helper()
	x.call(t, http.MethodPost, "/server", map[string]any{"enabled": !on}, nil)
}

// call asks the API of Toxiproxy for what it must not refuse.
func (x toxics) call(t testing.TB, method, path string, body, out any) {
	t.Helper()
	if status := x.ask(t, method, path, body, out); status >= http.StatusBadRequest {
		t.Fatalf("toxiproxy: %s %s: %s", method, path, http.StatusText(status))
	}
}

// ask asks the API of Toxiproxy, and returns the status of its answer.
func (x toxics) ask(t testing.TB, method, path string, body, out any) int {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute) // clean-up uses it too; what ends a delay waits for what it delays
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, x.api+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	if out != nil && a.StatusCode < http.StatusBadRequest {
		if err := json.NewDecoder(a.Body).Decode(out); err != nil {
			t.Fatal(err)
		}
	}
	return a.StatusCode
}
