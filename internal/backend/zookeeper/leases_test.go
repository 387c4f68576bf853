package zookeeper_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"curt/internal/backend/zookeeper"
	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/link"
	"curt/internal/testkit"
)

// open opens the counters below a node, until the test ends.
func open(t *testing.T, url string) *zookeeper.Leases {
	t.Helper()
	cfg, err := zookeeper.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := zookeeper.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, l.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// connected opens counters, and waits until there is a session.
func connected(t *testing.T, url string) *zookeeper.Leases {
	t.Helper()
	l := open(t, url)
	until(t, "a session", func() bool { return l.Healthy() == nil })
	return l
}

// driver is a way in which curt uses ZooKeeper, as codegentest has it.
type driver struct {
	open  func(t *testing.T) codegen.Leaser
	again func(t *testing.T, l codegen.Leaser) codegen.Leaser
}

// drivers are counters by themselves, and confirmed by a store. Each call of open has counters that nobody used.
func drivers(t *testing.T) map[string]driver {
	t.Helper()
	return driversOf(testkit.StartZooKeeper(t), "")
}

// driversOf uses a server with a query.
func driversOf(server *testkit.ZooKeeper, query string) map[string]driver {
	fresh := func() string { return server.URL("/curt/"+rand.Text()) + query }
	urls, stores := map[codegen.Leaser]string{}, map[codegen.Leaser]codegen.Leaser{}
	alone := func(t *testing.T, url string) codegen.Leaser {
		l := connected(t, url)
		urls[l] = url
		return l
	}
	confirmed := func(t *testing.T, url string, store codegen.Leaser) codegen.Leaser {
		l := codegen.NewConfirmed(connected(t, url), store, nil)
		urls[l], stores[l] = url, store
		return l
	}
	return map[string]driver{
		"alone": {
			func(t *testing.T) codegen.Leaser { return alone(t, fresh()) },
			func(t *testing.T, l codegen.Leaser) codegen.Leaser { return alone(t, urls[l]) },
		},
		"confirmed": {
			func(t *testing.T) codegen.Leaser { return confirmed(t, fresh(), codegentest.NewLeaser()) },
			func(t *testing.T, l codegen.Leaser) codegen.Leaser { return confirmed(t, urls[l], stores[l]) },
		},
	}
}

func TestLeases(t *testing.T) {
	for name, d := range drivers(t) {
		t.Run(name, func(t *testing.T) { codegentest.RunLeaser(t, d.open, d.again) })
	}
}

func TestSnowflakeOverZooKeeper(t *testing.T) {
	testkit.Faults(t)
	for name, d := range drivers(t) {
		t.Run(name, func(t *testing.T) { codegentest.RunSnowflake(t, d.open, d.again) })
	}
}

// codes is a set of codes that must not come twice.
type codes struct {
	mu   sync.Mutex
	seen map[link.Code]bool // guarded by mu
}

func (c *codes) take(t *testing.T, code link.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[code] {
		t.Errorf("code %q was generated twice", code)
	}
	c.seen[code] = true
}

// TestRangesOverZooKeeper has three processes generate codes from ranges that they lease.
func TestRangesOverZooKeeper(t *testing.T) {
	rangesAt(t, testkit.StartZooKeeper(t).URL("/range"))
}

func rangesAt(t *testing.T, url string) {
	t.Helper()
	store := codegentest.NewLeaser()
	all, end := codes{seen: map[link.Code]bool{}}, time.Now().Add(3*time.Minute)
	var wg sync.WaitGroup
	for range 3 {
		g := codegen.NewRange(codegen.RangeConfig{
			Leaser:      codegen.NewConfirmed(connected(t, url), store, nil),
			Permutation: codegen.NewPermutation([32]byte{1}), Length: 7, Size: 100,
		})
		for range 8 {
			wg.Go(func() {
				for n := 0; n < 500; {
					code, err := g.Next(t.Context(), codegen.Need{})
					switch {
					case err == nil:
						all.take(t, code)
						n++
					case !errors.Is(err, link.ErrUnavailable) || time.Now().After(end): // of a busy machine a lease may take too long
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

// A node that only another user may read, and one that is no counter, are errors that say why.
func TestWhatZooKeeperRefuses(t *testing.T) {
	server := testkit.StartZooKeeper(t)
	ours := "zookeeper://curt:se%40cret@" + server.Address + "/own"
	if first, err := connected(t, ours).Lease(t.Context(), "codes-7", 10); err != nil || first != 0 {
		t.Fatalf("Lease with a user: %d, %v", first, err)
	}
	for _, url := range []string{server.URL("/own"), "zookeeper://curt:other@" + server.Address + "/own"} {
		stranger := connected(t, url)
		_, err := stranger.Lease(t.Context(), "codes-7", 10)
		if !errors.Is(err, link.ErrUnavailable) || !errors.Is(err, zk.ErrNoAuth) || stranger.Healthy() == nil || strings.Contains(err.Error(), "link store") {
			t.Errorf("Lease of a stranger: %v, health %v", err, stranger.Healthy())
		}
	}
	if first, err := connected(t, ours).Lease(t.Context(), "codes-7", 10); err != nil || first != 10 {
		t.Errorf("Lease of the same user: %d, %v; want 10", first, err)
	}
	raw, _, err := zk.Connect([]string{server.Address}, 4*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	other := connected(t, server.URL("/other"))
	if first, err := other.Lease(t.Context(), "codes-7", 10); err != nil || first != 0 || other.Healthy() != nil {
		t.Errorf("the first lease: %d, %v; health %v", first, err, other.Healthy())
	}
	for name, text := range map[string]string{"empty": "", "word": "seven", "negative": "-1", "large": "9223372036854775808"} {
		if _, err := raw.Create("/other/"+name, []byte(text), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		if first, err := other.Lease(t.Context(), name, 1); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("Lease from a node with %q: %d, %v; want ErrInvalid", text, first, err)
		}
	}
}

// Without a server calls end within their callers' time, and with "unavailable".
func TestWithoutAServer(t *testing.T) {
	testkit.Faults(t)
	cfg, err := zookeeper.Parse("zookeeper://127.0.0.1:1/curt")
	if err != nil {
		t.Fatal(err)
	}
	if what, err := zookeeper.Probe(t.Context(), cfg); err == nil || err.Error() != "no session of ZooKeeper: dial tcp 127.0.0.1:1: connect: connection refused" {
		t.Errorf("Probe: %q, %v", what, err)
	}
	l := open(t, "zookeeper://127.0.0.1:1/curt")
	began := time.Now()
	if _, err := l.Lease(t.Context(), "codes-7", 1); !errors.Is(err, link.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "ZooKeeper") || strings.Contains(err.Error(), "link store") {
		t.Errorf("Lease: %v, want ErrUnavailable, of ZooKeeper and not of the link store", err)
	}
	if l.Healthy() == nil {
		t.Error("it is healthy")
	}
	if took := time.Since(began); took > 3*time.Minute {
		t.Errorf("a caller without a deadline waited %s", took)
	}
}

func TestProbe(t *testing.T) {
	server := testkit.StartZooKeeper(t)
	cfg, err := zookeeper.Parse(server.URL("/probe"))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "what the server says of itself", func() bool {
		what, err := zookeeper.Probe(t.Context(), cfg)
		return err == nil && what == "ZooKeeper 3.9.5"
	})
	cfg.Servers = append(cfg.Servers, "127.0.0.1:1")
	until(t, "what each server says of itself", func() bool {
		s := zookeeper.Inspect(t.Context(), cfg)
		return s.Version == "3.9.5" && slices.Equal(s.Modes, []string{"standalone"}) && len(s.Unavailable) == 1
	})
}
