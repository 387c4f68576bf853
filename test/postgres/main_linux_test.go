package postgres_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// heardWithin is how long a server takes to know what another was told. No test fails by it:
// who waits for it waits a minute, which is less than what is in memory is kept for without a
// word about it.
const heardWithin = 2 * time.Second

// node is one server of several, and a client of it.
type node struct {
	*curttest.Server

	api *client.Client
}

// begin starts servers over the database at a URL, each with a folder of its own.
func begin(t *testing.T, n int, url string, env ...string) []node {
	t.Helper()
	return beginOf(t, n, "", url, env...)
}

// beginOf is begin for another binary.
func beginOf(t *testing.T, n int, binary, url string, env ...string) []node {
	t.Helper()
	nodes := make([]node, n)
	for i := range nodes {
		nodes[i] = node{Server: curttest.Start(t, curttest.Options{Binary: binary, Data: t.TempDir(), Env: append([]string{"CURT_LINKS=" + url}, env...)})}
		if nodes[i].Addr == "" {
			continue // a worker
		}
		var err error
		if nodes[i].api, err = client.New("http://"+nodes[i].Addr, client.WithKey(curttest.Key)); err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}

// database returns the URL of a database of its own, on a server that ends with the test.
func database(t *testing.T) string {
	t.Helper()
	return testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t)
}

// lookUp is what a look-up has for an answer of the database.
const lookUp = time.Second

// answers is what a path is answered with. A look-up that a busy machine did not finish in time is a 503, and asked for again.
func (n node) answers(t *testing.T, path string) (status int, location string) {
	t.Helper()
	c := n.MustDial(t)
	defer c.Close()
	for tries := 1; ; tries++ {
		began := time.Now()
		a, err := c.Do("GET", path, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != http.StatusServiceUnavailable || time.Since(began) < lookUp || tries == 10 {
			location, _ = a.Get("Location")
			return a.Status, location
		}
	}
}

// Follow is that of Server, with the second try that answers gives a look-up: what is lost is so twice.
func (n node) Follow(t *testing.T, links []curttest.Link, clients int) []string {
	t.Helper()
	if len(n.Server.Follow(t, links, clients)) == 0 {
		return nil
	}
	return n.Server.Follow(t, links, clients)
}

// AllGone is that of Server, as Follow is.
func (n node) AllGone(t *testing.T, links []curttest.Link, clients int) []string {
	t.Helper()
	if len(n.Server.AllGone(t, links, clients)) == 0 {
		return nil
	}
	return n.Server.AllGone(t, links, clients)
}

// soon polls until ok, three minutes at the most. It returns how long it took.
func soon(t *testing.T, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > 3*time.Minute {
			t.Errorf("%s: not within three minutes", what)
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

// stop lets a server sleep for as long as f runs.
func stop(t *testing.T, n node, f func()) {
	t.Helper()
	if err := syscall.Kill(n.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Kill(n.PID, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}()
	soon(t, "every thread stands still", func() bool { return standsStill(t, n.PID) }) // the signal is on its way when kill(2) returns
	f()
}

// standsStill reports whether a process was stopped.
func standsStill(t *testing.T, pid int) bool {
	t.Helper()
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		t.Fatalf("threads of %d: %v", pid, err)
	}
	return !slices.ContainsFunc(stats, func(name string) bool {
		stat, err := os.ReadFile(name)
		_, state, _ := strings.Cut(string(stat), ") ")
		return err == nil && !strings.HasPrefix(state, "T") // a thread may have ended
	})
}
