package redis_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"curt/internal/backend/redis"
	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/ratelimit/ratelimittest"
	"curt/internal/testkit"
)

var (
	_ cache.Shared    = (*redis.Client)(nil)
	_ cache.Bus       = (*redis.Client)(nil)
	_ ratelimit.Store = (*redis.Limiter)(nil)
)

// key is what names of buckets are hashed with.
var key = []byte("of tests, thirty-two bytes long..")

// open returns a client that has connected, has the time and runs until the test ends.
func open(t *testing.T, url, namespace string) *redis.Client {
	t.Helper()
	return openAs(t, url, namespace, true)
}

func openAs(t *testing.T, url, namespace string, patient bool) *redis.Client {
	t.Helper()
	c, err := redis.New(redis.Config{URL: url, Namespace: namespace, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if patient {
		c.Patient()
	}
	run(t, c)
	return c
}

// run runs a client until the test ends, and waits until it has connected.
func run(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, c.Close()); err != nil {
			t.Error(err)
		}
	})
	wait(t, "a connection", func() bool { return c.Healthy() == nil })
}

// wait waits for what comes about elsewhere.
func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// oneClock has time stand still where it goes back, as the clock of one server does for
// those who ask it: a script does so by itself for each bucket that was spent from.
type oneClock struct {
	ratelimit.Store

	mu     sync.Mutex
	latest time.Time
}

func (o *oneClock) Spend(ctx context.Context, now time.Time, charges []ratelimit.Charge) ([]ratelimit.Verdict, error) {
	o.mu.Lock()
	if now.After(o.latest) {
		o.latest = now
	}
	now = o.latest
	o.mu.Unlock()
	return o.Store.Spend(ctx, now, charges)
}

// contracts runs all suites against a server, each case in a namespace of its own.
func contracts(t *testing.T, url string) {
	n := 0
	namespace := func() string { n++; return fmt.Sprint("t", n) }
	t.Run("shared", func(t *testing.T) {
		cachetest.RunShared(t, func(t *testing.T) (one, again cache.Shared) {
			ns := namespace()
			return open(t, url, ns), open(t, url, ns)
		})
	})
	t.Run("bus", func(t *testing.T) {
		cachetest.RunBus(t, func(t *testing.T) (one, again cache.Bus) {
			ns := namespace()
			return open(t, url, ns), open(t, url, ns)
		})
	})
	t.Run("ledger", func(t *testing.T) {
		ratelimittest.Ledger(t, func(t *testing.T, kind string) (all [3]ratelimit.Ledger) {
			ns := namespace()
			for i := range all {
				all[i] = open(t, url, ns).Ledger(kind)
			}
			return all
		})
		ratelimittest.Tally(t, func(t *testing.T) [2]ratelimit.Tally {
			ns := namespace()
			return [2]ratelimit.Tally{open(t, url, ns).Ledger("creators"), open(t, url, ns).Ledger("creators")}
		})
	})
	t.Run("limits", func(t *testing.T) {
		ratelimittest.Run(t, func(t *testing.T) ratelimit.Store {
			return &oneClock{Store: open(t, url, namespace()).Limiter().TheirClock()}
		})
	})
}

func TestRedis(t *testing.T) { contracts(t, testkit.StartRedis(t).URL()) }

func TestAHundredThousandAddressesAreOneCaller(t *testing.T) {
	ratelimittest.Network(t, open(t, testkit.StartRedis(t).URL(), "network").Limiter().TheirClock(), 100_000)
}

func TestSentinel(t *testing.T) { contracts(t, testkit.StartSentinel(t).URL()) }

func TestCluster(t *testing.T) {
	url := testkit.StartCluster(t).URL()
	contracts(t, url)
	t.Run("what is given back fills no bucket past its brim", func(t *testing.T) { givesBack(t, url) })
}

func TestWithoutAServerCallsEndAtOnce(t *testing.T) {
	c, err := redis.New(redis.Config{URL: "redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Get(t.Context(), link.Key{Code: "a"}); !errors.Is(err, redis.ErrAway) {
		t.Errorf("Get: %v", err)
	}
	if err := c.Publish(t.Context(), cache.Note{Head: link.Heads{1}}); !errors.Is(err, redis.ErrAway) {
		t.Errorf("Publish: %v", err)
	}
	if _, err := c.Limiter().Spend(t.Context(), time.Now(), []ratelimit.Charge{{Bucket: "a", Limit: ratelimit.Per(1, time.Hour), Cost: 1}}); !errors.Is(err, redis.ErrAway) {
		t.Errorf("Spend: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
