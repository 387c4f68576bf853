package cache_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/link"
)

// TestASourceThatJustFailedIsLeftAlone: what is old is served for a second after its load
// failed, before anybody asks for it again.
func TestASourceThatJustFailedIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{}, s)
		run(t, c.Run)
		wantVersion(t, c, key("a"), 1)
		time.Sleep(time.Hour)
		s.SetDown(errAway)
		wantVersion(t, c, key("a"), 1) // asks, and fails
		failed := s.Lookups(key("a"))
		for range 99 {
			time.Sleep(10 * time.Millisecond)
			wantVersion(t, c, key("a"), 1)
			synctest.Wait()
		}
		wantLookups(t, s, key("a"), failed)
		time.Sleep(10 * time.Millisecond)
		wantVersion(t, c, key("a"), 1)
		synctest.Wait()
		wantLookups(t, s, key("a"), failed+1)
	})
}

// TestWhatNeedsALaterReleaseIsNotServedAsBefore: a link that got a password has none in what
// was held of it, and for that nobody is redirected.
func TestWhatNeedsALaterReleaseIsNotServedAsBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{}, s)
		run(t, c.Run)
		wantVersion(t, c, key("a"), 1)
		time.Sleep(time.Hour)
		s.SetDown(&link.NewerError{Key: key("a"), Needs: 1})
		for range 2 {
			if found, err := c.Lookup(t.Context(), key("a")); !errors.Is(err, link.ErrUnavailable) {
				t.Errorf("served %+v, %v", found, err)
			}
			if held := c.Hit("", []byte("a")); held != nil {
				t.Errorf("held %+v", held.Target)
			}
		}
	})
}

// TestALinkIsSharedToItsLastNanosecond: of a link that is about to expire, others know
// nothing any more when it has.
func TestALinkIsSharedToItsLastNanosecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		ends := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		s.Put(key("soon"), link.Target{Destination: "https://a.example/", Expires: ends.UnixMilli()})
		one := process(t, s, l2, b)
		time.Sleep(time.Until(ends) - 1)
		wantVersion(t, one, key("soon"), 1)
		synctest.Wait()
		if e, ok := l2.Snapshot()[key("soon")]; !ok || e.Until.After(ends) {
			t.Errorf("shared %t, until %v after its expiry", ok, e.Until.Sub(ends))
		}
	})
}
