package cache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/link"
)

// hang is a source that answers nothing until the load's deadline.
func hang(ctx context.Context, _ link.Key) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestReadersAskForARefreshAheadOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{}, s)
		run(t, c.Run)
		wantVersion(t, c, key("a"), 1)
		time.Sleep(264 * time.Second) // 80 % of at most 330 s
		s.Put(key("a"), target("https://b.example/"))
		wantVersion(t, c, key("a"), 1) // the reader does not wait
		synctest.Wait()
		wantLookups(t, s, key("a"), 2)
		wantVersion(t, c, key("a"), 2)
		wantLookups(t, s, key("a"), 2)
	})
}

func TestAnUnusedEntryIsNotRefreshed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{}, s)
		run(t, c.Run)
		wantVersion(t, c, key("a"), 1)
		time.Sleep(24 * time.Hour)
		wantLookups(t, s, key("a"), 1)
	})
}

func TestAKeyInUseNeverWaitsForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{}, s)
		run(t, c.Run)
		wantVersion(t, c, key("a"), 1)
		s.OnLookup(hang)
		for began := time.Now(); time.Since(began) < 20*time.Minute; time.Sleep(100 * time.Millisecond) {
			asked := time.Now()
			wantVersion(t, c, key("a"), 1)
			if waited := time.Since(asked); waited != 0 {
				t.Fatalf("after %v a reader waited %v", time.Since(began), waited)
			}
		}
		if got := s.Lookups(key("a")); got > 20*60 {
			t.Fatalf("the hanging store was asked %d times in 20 minutes, want at most once a second", got)
		}
		s.OnLookup(nil)
		s.Put(key("a"), target("https://b.example/"))
		pass(3 * time.Second)
		wantVersion(t, c, key("a"), 1) // asks
		synctest.Wait()
		wantVersion(t, c, key("a"), 2)
	})
}

func TestWhatIsHeldIsServedForADayWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{}, s) // without Run: every look-up has to ask itself
		wantVersion(t, c, key("a"), 1)
		s.OnLookup(hang)
		time.Sleep(time.Hour)
		asked := time.Now()
		wantVersion(t, c, key("a"), 1)
		if waited := time.Since(asked); waited != 100*time.Millisecond {
			t.Fatalf("the first reader waited %v for the store, want 100 ms", waited)
		}
		asked = time.Now()
		wantVersion(t, c, key("a"), 1)
		if waited := time.Since(asked); waited != 0 {
			t.Fatalf("the second reader waited %v for a store known to fail", waited)
		}
		time.Sleep(23*time.Hour - time.Minute)
		wantVersion(t, c, key("a"), 1)
		time.Sleep(time.Minute)
		if _, err := c.Lookup(t.Context(), key("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("after a day: %v, want the store's error", err)
		}
	})
}

func TestWhatIsKnownDeadIsNeverServedStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{}, s)
		run(t, c.Run)
		wantVersion(t, c, key("a"), 1)
		c.Changed(s.Put(key("a"), link.Target{Status: link.Deleted}))
		s.SetDown(errAway)
		if got, err := c.Lookup(t.Context(), key("a")); !errors.Is(err, errAway) {
			t.Fatalf("got version %d, %v; want an error", got.Version, err)
		}
		s.SetDown(nil)
		wantVersion(t, c, key("a"), 2)
	})
}

func TestAKillDuringAFailingLoadIsNotServedStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{}, s)
		wantVersion(t, c, key("a"), 1)
		time.Sleep(time.Hour)
		s.OnLookup(hang)
		result := make(chan error, 1)
		go func() {
			_, err := c.Lookup(context.Background(), key("a"))
			result <- err
		}()
		synctest.Wait()
		c.Changed(s.Put(key("a"), link.Target{Status: link.Deleted}))
		if err := <-result; !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want an error: version 1 is known to be dead", err)
		}
	})
}
