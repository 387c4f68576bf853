package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
)

// disconnected returns a cache that has a link and has not heard of changes for long.
func disconnected(t *testing.T, s *cachetest.Source) (*cache.Tiered, *failingLog) {
	t.Helper()
	s.Put(key("a"), target("https://a.example/"))
	log := &failingLog{Source: s}
	c := newTiered(t, cache.Config{Shared: true}, s)
	run(t, c.Run)
	run(t, func(ctx context.Context) error { return c.Follow(ctx, log, time.Second) })
	synctest.Wait()
	wantVersion(t, c, key("a"), 1)
	log.down.Store(true)
	pass(6 * time.Second)
	return c, log
}

// TestADisconnectedProcessAsksTheSource: while the change log cannot be read and the source answers, no visitor is shown what
// was overtaken more than a second ago.
func TestADisconnectedProcessAsksTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		c, log := disconnected(t, s)
		s.Put(key("a"), target("https://b.example/"))
		if c.Hit("", []byte("a")) != nil {
			t.Error("an entry from before is a hit")
		}
		wantVersion(t, c, key("a"), 2)
		asked := s.Lookups(key("a"))
		s.Put(key("a"), target("https://c.example/"))
		time.Sleep(500 * time.Millisecond)
		wantVersion(t, c, key("a"), 2)
		wantLookups(t, s, key("a"), asked) // once a second
		pass(500 * time.Millisecond)
		wantVersion(t, c, key("a"), 3)

		log.down.Store(false)
		pass(2 * time.Second)
		wantVersion(t, c, key("a"), 3)
		asked = s.Lookups(key("a"))
		time.Sleep(time.Minute)
		wantVersion(t, c, key("a"), 3)
		wantLookups(t, s, key("a"), asked) // as ever
	})
}

// TestADisconnectedProcessServesWhatItHas: while the source does not answer either, links are served as they are held, and one
// visitor a second waits for it.
func TestADisconnectedProcessServesWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		for _, code := range []string{"b", "c"} {
			s.Put(key(code), target("https://a.example/"))
		}
		c, log := disconnected(t, s)
		log.down.Store(false)
		pass(2 * time.Second)
		for _, code := range []string{"a", "b", "c"} {
			wantVersion(t, c, key(code), 1)
		}
		log.down.Store(true)
		pass(6 * time.Second)
		s.SetDown(errAway)
		asked := 0
		for range 3 {
			for _, code := range []string{"a", "b", "c", "a", "b", "c"} {
				wantVersion(t, c, key(code), 1)
				synctest.Wait()
			}
			before := asked
			if asked = s.Lookups(key("a")) + s.Lookups(key("b")) + s.Lookups(key("c")); asked-before > 4 {
				t.Errorf("asked %d times within a second", asked-before)
			}
			pass(time.Second)
		}
		if asked < 5 {
			t.Errorf("asked %d times, of which 3 were before", asked)
		}
	})
}
