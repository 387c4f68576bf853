package cache_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"curt/internal/cache"
	"curt/internal/link"
	"curt/internal/testkit"
)

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestBudgetIsHeld(t *testing.T) {
	testkit.Unraced(t)
	const budget = 16 << 20
	s := scan{}
	before := heap()
	c := newTiered(t, cache.Config{Bytes: budget}, s)
	if got := heap() - before; got > 256<<10 {
		t.Errorf("an empty cache takes %d bytes", got)
	}
	for i := range 200_000 { // about 100 MB of links
		if _, err := c.Lookup(t.Context(), key(fmt.Sprint("code", i))); err != nil {
			t.Fatal(err)
		}
	}
	used := heap() - before
	stats := c.Stats()
	t.Logf("%d entries, %d bytes counted, %d bytes of heap: %d each",
		stats.Entries, stats.Bytes, used, used/uint64(stats.Entries))
	if used > budget*11/10 {
		t.Errorf("%d bytes of heap, want at most the budget of %d and a tenth", used, budget)
	}
	if used < budget*7/10 {
		t.Errorf("%d bytes of heap: the weights are far too high for a budget of %d", used, budget)
	}
	runtime.KeepAlive(c)
}

func TestAnEntryDoesNotKeepItsRequestAlive(t *testing.T) {
	c := newTiered(t, cache.Config{}, scan{})
	before := heap()
	for i := range 100 {
		path := fmt.Sprint("code", i, "?", strings.Repeat("x", 100_000))
		code, _, _ := strings.Cut(path, "?")
		if _, err := c.Lookup(t.Context(), key(code)); err != nil {
			t.Fatal(err)
		}
	}
	if got := heap() - before; got > 1<<20 {
		t.Errorf("100 entries take %d bytes", got)
	}
	runtime.KeepAlive(c)
}

func TestAScanDoesNotPushOutWhatIsInUse(t *testing.T) {
	testkit.Unraced(t)
	s := scan{}
	c := newTiered(t, cache.Config{Bytes: 4 << 20}, s)
	hot := func(i int) link.Key { return key(fmt.Sprint("hot", i%1000)) }
	for i := range 20_000 {
		_, _ = c.Lookup(t.Context(), hot(i))
	}
	for i := range 100_000 { // unknown and known codes, each once, while the hot ones go on
		k := key(fmt.Sprint("cold", i))
		if i%2 == 0 {
			k = key(fmt.Sprint("none", i))
		}
		_, _ = c.Lookup(t.Context(), k)
		_, _ = c.Lookup(t.Context(), hot(i))
	}
	held := 0
	for i := range 1000 {
		if c.Hit("", []byte(hot(i).Code)) != nil {
			held++
		}
	}
	if held < 950 {
		t.Errorf("%d of 1,000 links in use survived a scan of 100,000 codes", held)
	}
}
