package cache_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/link"
	"curt/internal/redirect"
)

var _ redirect.Source = (*cache.Tiered)(nil)

var errAway = errors.New("the store is away")

func key(code string) link.Key { return link.Key{Code: link.Code(code)} }

func target(url string) link.Target { return link.Target{Destination: url} }

func newTiered(t testing.TB, cfg cache.Config, s cache.Source) *cache.Tiered {
	t.Helper()
	c, err := cache.New(cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run starts f and ends it with the test.
func run(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("loop ended with %v", err)
		}
	})
}

// wantVersion looks k up and fails unless it has the version; 0 = not found.
func wantVersion(t *testing.T, c *cache.Tiered, k link.Key, want link.Version) {
	t.Helper()
	got, err := c.Lookup(t.Context(), k)
	if want == 0 {
		if !errors.Is(err, link.ErrNotFound) {
			t.Fatalf("Lookup(%s) = version %d, %v; want not found", k, got.Version, err)
		}
		return
	}
	if err != nil || got.Version != want {
		t.Fatalf("Lookup(%s) = version %d, %v; want version %d", k, got.Version, err, want)
	}
}

func wantLookups(t *testing.T, s *cachetest.Source, k link.Key, want int) {
	t.Helper()
	if got := s.Lookups(k); got != want {
		t.Fatalf("the source was asked %d times for %s, want %d", got, k, want)
	}
}

// pass lets a little more than d go by.
func pass(d time.Duration) { time.Sleep(d + time.Millisecond) }
