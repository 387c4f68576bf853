package ratelimit_test

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"testing"
	"time"

	"curt/internal/ratelimit"
	"curt/internal/ratelimit/ratelimittest"
	"curt/internal/testkit"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestMemoryKeepsTheContract(t *testing.T) {
	ratelimittest.Run(t, func(*testing.T) ratelimit.Store { return ratelimit.NewMemory() })
}

func TestAHundredThousandAddressesAreOneCaller(t *testing.T) {
	ratelimittest.Network(t, ratelimit.NewMemory(), 100_000)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemoryIsBounded names two million buckets of strangers, none of which fills
// again within the test, while one known caller goes on.
func TestMemoryIsBounded(t *testing.T) {
	testkit.Unraced(t)
	before := heap()
	m := ratelimit.NewMemory()
	limit := ratelimit.Limit{Count: 1, Period: 24 * time.Hour, Burst: 1}
	now := start
	charges := make([]ratelimit.Charge, 1)
	for i := range 2_000_000 {
		if i%1000 == 0 {
			now = now.Add(time.Millisecond)
		}
		charges[0] = ratelimit.Charge{Bucket: "create:2001:db8:" + strconv.Itoa(i) + "::/64", Limit: limit, Cost: 1}
		if v, err := m.Spend(t.Context(), now, charges); err != nil || !v[0].Allowed {
			t.Fatalf("stranger %d: %+v, %v", i, v, err)
		}
	}
	used := heap() - before
	t.Logf("%d MB after two million buckets", used>>20)
	if used > 64<<20 {
		t.Errorf("%d bytes after two million buckets, want at most 64 MB", used)
	}
	if v, err := m.Spend(t.Context(), now, charges); err != nil || v[0].Allowed {
		t.Errorf("the newest bucket was forgotten: %+v, %v", v, err)
	}
	runtime.KeepAlive(m)
}

// TestFullBucketsMakeRoom floods again and again with buckets that fill meanwhile:
// none that still says something is dropped.
func TestFullBucketsMakeRoom(t *testing.T) {
	testkit.Unraced(t)
	m := ratelimit.NewMemory()
	day := ratelimit.Limit{Count: 1, Period: 24 * time.Hour, Burst: 1}
	second := ratelimit.Limit{Count: 1, Period: time.Second, Burst: 1}
	spend := func(now time.Time, bucket string, l ratelimit.Limit) ratelimit.Verdict {
		t.Helper()
		v, err := m.Spend(t.Context(), now, []ratelimit.Charge{{Bucket: bucket, Limit: l, Cost: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return v[0]
	}
	for i := range 1000 {
		spend(start, fmt.Sprint("known ", i), day)
	}
	for round := range 6 {
		for i := range 250_000 {
			spend(start.Add(time.Duration(round)*time.Minute), fmt.Sprint(round, " ", i), second)
		}
	}
	for i := range 1000 {
		if v := spend(start.Add(time.Hour), fmt.Sprint("known ", i), day); v.Allowed {
			t.Fatalf("known caller %d was forgotten after floods that had passed", i)
		}
	}
}

func TestClientBucket(t *testing.T) {
	for addr, want := range map[string]string{
		"203.0.113.7":             "203.0.113.7",
		"::ffff:203.0.113.7":      "203.0.113.7",
		"::ffff:203.0.113.7%eth0": "203.0.113.7",
		"2001:db8:1:2:3:4:5:6":    "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::":     "2001:db8:1:2::/64",
		"2001:db8:1:3::":          "2001:db8:1:3::/64",
		"fe80::1%eth0":            "fe80::/64",
		"::1":                     "::/64",
	} {
		if got := ratelimit.ClientBucket(netip.MustParseAddr(addr)); got != want {
			t.Errorf("ClientBucket(%s) = %q, want %q", addr, got, want)
		}
	}
	if got := ratelimit.ClientBucket(netip.Addr{}); got != "invalid IP" {
		t.Errorf("bucket of no address is %q", got)
	}
}

func TestClientNetwork(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8::1": "2001:db8::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := ratelimit.ClientNetwork(netip.MustParseAddr(addr)); got != netip.MustParsePrefix(want) {
			t.Errorf("%s is of %s, want %s", addr, got, want)
		}
	}
	if got := ratelimit.ClientNetwork(netip.Addr{}); got != (netip.Prefix{}) {
		t.Errorf("no address is of %s", got)
	}
}

func TestClientSurroundings(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7": "192.0.2.0/24", "192.0.3.7": "192.0.3.0/24", "::ffff:192.0.2.7": "192.0.2.0/24", "::ffff:192.0.2.7%eth0": "192.0.2.0/24",
		"2001:db8:1:2:3::4": "2001:db8:1::/48", "2001:db8:2::": "2001:db8:2::/48", "fe80::1%eth0": "fe80::/48",
	} {
		if got := ratelimit.ClientSurroundings(netip.MustParseAddr(addr)); got != netip.MustParsePrefix(want) {
			t.Errorf("around %s is %s, want %s", addr, got, want)
		}
	}
	if got := ratelimit.ClientSurroundings(netip.Addr{}); got != (netip.Prefix{}) {
		t.Errorf("around no address is %s", got)
	}
}

func BenchmarkSpend(b *testing.B) {
	m := ratelimit.NewMemory()
	limit := ratelimit.Limit{Count: 10, Period: time.Minute, Burst: 10}
	b.ReportAllocs()
	b.SetParallelism(32) // 64 callers on two cores
	b.RunParallel(func(pb *testing.PB) {
		i := 0
		for pb.Next() {
			i++
			charges := [1]ratelimit.Charge{{Bucket: "create:203.0.113." + strconv.Itoa(i&255), Limit: limit, Cost: 1}}
			if _, err := m.Spend(context.Background(), start.Add(time.Duration(i)*time.Microsecond), charges[:]); err != nil {
				b.Error(err)
			}
		}
	})
}
