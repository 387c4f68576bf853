package cache_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/cache/issued"
	"curt/internal/codegen"
	"curt/internal/link"
)

// Keys are found by a hash of 64 bits. Two that share one are told apart.
func TestKeysOfOneHashAreToldApart(t *testing.T) {
	a := key("a")
	for name, b := range map[string]link.Key{"another code": key("b"), "another domain": {Domain: "other.example", Code: "a"}} {
		s := cachetest.NewSource()
		s.Put(a, target("https://a.example/"))
		s.Put(b, target("https://b.example/"))
		c := newTiered(t, cache.Config{}, s)
		wantVersion(t, c, a, 1)
		c.Collide(a, b)
		if e := c.Hit(b.Domain, []byte(b.Code)); e != nil {
			t.Errorf("%s: %s is answered from %s", name, b, e.Key)
		}
		if got, err := c.Lookup(t.Context(), b); err != nil || got.Destination != "https://b.example/" {
			t.Errorf("%s: %s leads to %s, %v", name, b, got.Destination, err)
		}
	}
}

// A link that another process made by hand is heard of by a later change at the latest, and
// is not ruled out from then on.
func TestAChangeOfAnUnheardCodeIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leased atomic.Uint64
		s := cachetest.NewSource()
		codes := issued.New(&aliases{}, codegen.NewCounts(decimal{}, markAt(&leased)))
		c := newTiered(t, cache.Config{Issued: codes}, s)
		run(t, c.Run)
		synctest.Wait()
		time.Sleep(time.Second)
		s.Put(key("by-hand"), target("https://a.example/"))
		if !codes.Never("by-hand") {
			t.Fatal("the code is possible already: this proves nothing")
		}
		c.Changed(s.Put(key("by-hand"), target("https://b.example/")))
		wantVersion(t, c, key("by-hand"), 2)
		if codes.Never("by-hand") {
			t.Error("a code that exists is ruled out")
		}
	})
}
