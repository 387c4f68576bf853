package cache_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/cache/issued"
	"curt/internal/codegen"
)

// TestALinkThatAnotherProcessJustMadeIsKnown asks for an alias right after another process
// made it, and for a thousand that nobody made.
func TestALinkThatAnotherProcessJustMadeIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leased atomic.Uint64
		s := cachetest.NewSource()
		codes := issued.New(&aliases{}, codegen.NewCounts(decimal{}, markAt(&leased)))
		c := newTiered(t, cache.Config{Shared: true, Issued: codes}, s)
		run(t, c.Run)
		follow(t, c, s)
		time.Sleep(1500 * time.Millisecond)

		wantVersion(t, c, key("never"), 0)
		if s.Lookups(key("never")) != 0 || c.Stats().Never != 1 {
			t.Fatalf("the filter is not ready: %+v", c.Stats())
		}
		s.Put(key("together"), target("https://a.example/")) // told only by the log
		wantVersion(t, c, key("together"), 1)

		began, asked := time.Now(), s.Polls()
		var scan sync.WaitGroup
		for i := range 1000 {
			scan.Go(func() { wantVersion(t, c, key(fmt.Sprint("nobody-", i)), 0) })
		}
		scan.Wait()
		if d := time.Since(began); d > 100*time.Millisecond {
			t.Errorf("codes that nobody made took %s", d)
		}
		if n := s.Polls() - asked; n > 5 || c.Stats().Never != 1001 {
			t.Errorf("the log was read %d times, %d codes were ruled out", n, c.Stats().Never)
		}
	})
}
