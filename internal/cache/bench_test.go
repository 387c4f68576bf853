package cache_test

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"curt/internal/cache"
	"curt/internal/link"
)

func warm(tb testing.TB, n int) (*cache.Tiered, []link.Key) {
	tb.Helper()
	c := newTiered(tb, cache.Config{Bytes: 256 << 20}, scan{})
	keys := make([]link.Key, n)
	for i := range keys {
		keys[i] = key(fmt.Sprintf("c%06d", i))
		if _, err := c.Lookup(context.Background(), keys[i]); err != nil {
			tb.Fatal(err)
		}
	}
	return c, keys
}

func TestAHitDoesNotAllocate(t *testing.T) {
	c, keys := warm(t, 10)
	missing := key("none")
	_, _ = c.Lookup(t.Context(), missing)
	ctx, raw := t.Context(), []byte(keys[0].Code)
	for name, f := range map[string]func(){
		"Lookup":            func() { _, _ = c.Lookup(ctx, keys[0]) },
		"Lookup of unknown": func() { _, _ = c.Lookup(ctx, missing) },
		"Hit":               func() { _ = c.Hit("", raw) },
		"Hit of a domain":   func() { _ = c.Hit("links.example", raw) },
	} {
		if got := testing.AllocsPerRun(1000, f); got != 0 {
			t.Errorf("%s allocates %v times", name, got)
		}
	}
}

// reportCPU reports the processor time of this process between its two calls: on a
// machine that is shared, the clock on the wall measures the neighbours.
func reportCPU(b *testing.B) func() {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began := used()
	return func() { b.ReportMetric(float64(used()-began)/float64(b.N), "cpu-ns/op") }
}

func BenchmarkLookupHit(b *testing.B) {
	for _, n := range []int{1000, 100_000} { // within the processor's cache, and beyond
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchmarkLookup(b, n) })
	}
}

func benchmarkLookup(b *testing.B, n int) {
	c, keys := warm(b, n)
	ctx := b.Context()
	b.ReportAllocs()
	defer reportCPU(b)()
	i := 0
	for b.Loop() {
		i = (i + 7919) % len(keys)
		if _, err := c.Lookup(ctx, keys[i]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHitBytes(b *testing.B) {
	c, keys := warm(b, 1000)
	codes := make([][]byte, len(keys))
	for i, k := range keys {
		codes[i] = []byte(k.Code)
	}
	b.ReportAllocs()
	defer reportCPU(b)()
	i := 0
	for b.Loop() {
		i = (i + 7919) % len(codes)
		if c.Hit("", codes[i]) == nil {
			b.Fatal("no hit")
		}
	}
}

func BenchmarkHitParallel(b *testing.B) {
	c, keys := warm(b, 100_000)
	b.ReportAllocs()
	b.ResetTimer()
	defer reportCPU(b)()
	b.RunParallel(func(pb *testing.PB) {
		i := 0
		for pb.Next() {
			i = (i + 7919) % len(keys)
			_, _ = c.Lookup(context.Background(), keys[i])
		}
	})
}

func BenchmarkMiss(b *testing.B) {
	c := newTiered(b, cache.Config{}, scan{})
	codes := make([]link.Key, 1<<20)
	for i := range codes {
		codes[i] = key(fmt.Sprintf("c%07d", i))
	}
	b.ReportAllocs()
	defer reportCPU(b)()
	i := 0
	for b.Loop() {
		i++
		_, _ = c.Lookup(b.Context(), codes[i&(1<<20-1)])
	}
}
