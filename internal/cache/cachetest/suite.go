package cachetest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/cache"
	"curt/internal/link"
)

// until is when entries of the suite end: whole milliseconds, which is what is kept.
func until(d time.Duration) time.Time { return time.Now().Add(d).UTC().Truncate(time.Millisecond) }

func entry(v link.Version) cache.Entry {
	return cache.Entry{
		Target: link.Target{Destination: fmt.Sprint("https://example.com/", v), Version: v, Redirect: 302, Status: link.Active, Safety: link.Clean},
		AsOf:   link.Heads{7}, Until: until(time.Hour), Cost: 1500 * time.Microsecond,
	}
}

// RunShared proves the cache.Shareds that open returns: each is empty, and again is
// another process's handle on the same data.
func RunShared(t *testing.T, open func(t *testing.T) (one, again cache.Shared)) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, one, again cache.Shared)
	}{
		{"every field comes back", everyField},
		{"keys do not touch each other", keysApart},
		{"a newer version stays", newerStays},
		{"a void entry keeps older ones out", voidStays},
		{"what has ended is not there", ended},
		{"writers at once leave the newest", newestWins},
		{"an ended context ends the call", endedContext},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, again := open(t)
			c.run(t, one, again)
		})
	}
}

func mustPut(t *testing.T, s cache.Shared, k link.Key, e cache.Entry) {
	t.Helper()
	if err := s.Put(t.Context(), k, e); err != nil {
		t.Fatalf("Put(%s): %v", k, err)
	}
}

// mustGet returns what is kept; nil = nothing.
func mustGet(t *testing.T, s cache.Shared, k link.Key) *cache.Entry {
	t.Helper()
	e, found, err := s.Get(t.Context(), k)
	if err != nil {
		t.Fatalf("Get(%s): %v", k, err)
	}
	if !found {
		return nil
	}
	return &e
}

func wantVersion(t *testing.T, s cache.Shared, k link.Key, want link.Version) {
	t.Helper()
	got := mustGet(t, s, k)
	if got == nil || got.Version() != want {
		t.Fatalf("%s is kept as %+v, want version %d", k, got, want)
	}
}

func everyField(t *testing.T, one, again cache.Shared) {
	long := "https://example.com/" + strings.Repeat("%C3%A4", 2048)
	for i, e := range []cache.Entry{
		entry(1),
		{Missing: true, AsOf: nil, Until: until(time.Hour)},
		{Target: link.Target{Version: 3}, Void: true, Until: until(time.Hour)},
		{Target: link.Target{Version: 1<<53 - 1, Status: link.Deleted, Safety: link.Clean}, AsOf: link.Heads{math.MaxInt64}, Until: until(time.Hour)},
		{Target: link.Target{
			Destination: long, Fallback: long, Starts: math.MinInt64, Expires: math.MaxInt64, Version: 2,
			Exhausted: true, Redirect: 308, Status: link.Disabled, Safety: link.Legal,
			ForwardQuery: true, NoIndex: true, Cacheable: true, Limited: true,
		}, AsOf: link.Heads{0, 1, 0, math.MaxInt64, 0}, Until: until(24 * time.Hour), Cost: time.Hour},
	} {
		k := link.Key{Code: link.Code(fmt.Sprint("k", i))}
		mustPut(t, one, k, e)
		for _, s := range []cache.Shared{one, again} {
			if got := mustGet(t, s, k); got == nil {
				t.Errorf("entry %d is not there", i)
			} else if diff := cmp.Diff(e, *got); diff != "" {
				t.Errorf("entry %d: -put +got\n%s", i, diff)
			}
		}
	}
}

func keysApart(t *testing.T, one, again cache.Shared) {
	keys := []link.Key{
		{Code: "a"},
		{Code: "A"},
		{Code: "-"},
		{Code: link.Code(strings.Repeat("x", link.MaxCode))},
		{Domain: "a.example", Code: "b"},
		{Domain: "a.example:8443", Code: "b"},
		{Domain: "xn--bcher-kva.example", Code: "b"},
		{Code: "b"},
	}
	for i, k := range keys {
		if got := mustGet(t, one, k); got != nil {
			t.Fatalf("%s is there: %+v", k, got)
		}
		mustPut(t, one, k, entry(link.Version(i+1)))
	}
	for i, k := range keys {
		wantVersion(t, again, k, link.Version(i+1))
	}
}

func newerStays(t *testing.T, one, again cache.Shared) {
	k := link.Key{Code: "a"}
	mustPut(t, one, k, cache.Entry{Missing: true, Until: until(time.Hour)})
	mustPut(t, one, k, entry(2))
	mustPut(t, again, k, entry(1))
	wantVersion(t, one, k, 2)
	mustPut(t, again, k, cache.Entry{Missing: true, Until: until(time.Hour)})
	wantVersion(t, one, k, 2)
	same := entry(2)
	same.AsOf = link.Heads{99}
	mustPut(t, again, k, same)
	if got := mustGet(t, one, k); got == nil || got.AsOf.At(0) != 99 {
		t.Errorf("the same version, read later, was not kept: %+v", got)
	}
	for v := link.Version(9); v <= 11; v++ { // 10 is less than 9 as text
		mustPut(t, one, k, entry(v))
		wantVersion(t, again, k, v)
	}
	mustPut(t, one, k, entry(1<<32))
	mustPut(t, one, k, entry(1<<32-1))
	wantVersion(t, again, k, 1<<32)
}

func voidStays(t *testing.T, one, again cache.Shared) {
	k := link.Key{Code: "a"}
	void := cache.Entry{Target: link.Target{Version: 2}, Void: true, Until: until(time.Hour)}
	mustPut(t, one, k, entry(1))
	mustPut(t, one, k, void)
	mustPut(t, again, k, entry(1))
	if got := mustGet(t, again, k); got == nil || !got.Void || got.Version() != 2 {
		t.Fatalf("an older version came back over the mark: %+v", got)
	}
	mustPut(t, again, k, entry(2))
	mustPut(t, one, k, void)
	if got := mustGet(t, one, k); got == nil || got.Void {
		t.Fatalf("the mark replaced the version that it announced: %+v", got)
	}
}

func ended(t *testing.T, one, again cache.Shared) {
	k := link.Key{Code: "a"}
	past := entry(1)
	past.Until = until(-time.Second)
	mustPut(t, one, k, past)
	if got := mustGet(t, again, k); got != nil {
		t.Errorf("an entry that had ended is kept: %+v", got)
	}
	soon := entry(2)
	for d := 300 * time.Millisecond; ; d *= 2 { // a busy machine may not read it before its end
		soon.Until = until(d)
		mustPut(t, one, k, soon)
		if got := mustGet(t, again, k); got != nil && got.Version() == 2 {
			break
		} else if got != nil || d > patience {
			t.Fatalf("an entry of %v is kept as %+v", d, got)
		}
	}
	time.Sleep(time.Until(soon.Until) + 20*time.Millisecond) // the suite runs against real servers
	if got := mustGet(t, again, k); got != nil {
		t.Errorf("it is still there after its end: %+v", got)
	}
	mustPut(t, again, k, entry(1))
	wantVersion(t, one, k, 1)
}

func newestWins(t *testing.T, one, again cache.Shared) {
	const writers, versions = 16, 64
	k := link.Key{Code: "a"}
	var wg sync.WaitGroup
	for w := range writers {
		s := []cache.Shared{one, again}[w%2]
		wg.Go(func() {
			for v := range versions {
				// A busy machine may make one late; then the next counts.
				_ = s.Put(t.Context(), k, entry(link.Version((v*7+w)%versions+1)))
			}
		})
	}
	wg.Wait()
	mustPut(t, one, k, entry(versions))
	mustPut(t, again, k, entry(versions-1))
	wantVersion(t, again, k, versions)
}

func endedContext(t *testing.T, one, _ cache.Shared) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = one.Get(ctx, link.Key{Code: "a"})
		_ = one.Put(ctx, link.Key{Code: "a"}, entry(1))
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("an ended context is waited for")
	}
}
