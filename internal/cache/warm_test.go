package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache/cachetest"
	"curt/internal/link"
)

// made is a link that was begun to be made so long ago, as its store keeps it.
func made(k link.Key, url string, v link.Version, ago time.Duration) link.Link {
	return link.Link{
		Key: k, Destination: url, Version: v, Status: link.Active, Safety: link.Clean, Redirect: 302,
		Created: time.Now().Add(-ago).UTC().Truncate(time.Millisecond),
	}
}

// calm is how long it takes until Warm knows a position that is old enough.
const calm = 25 * time.Second

func TestAWarmedLinkIsReadByNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		one, two := process(t, s, l2, b), process(t, s, l2, b)
		time.Sleep(calm)
		wantVersion(t, two, key("a"), 0) // somebody tried it before: that is in L2, too
		synctest.Wait()
		ch := s.Put(key("a"), target("https://a.example/"))
		one.Announce(ch)
		one.Warm(made(key("a"), "https://a.example/", 1, 50*time.Millisecond))
		time.Sleep(time.Second)
		before := s.Lookups(key("a"))
		for range 3 {
			three := process(t, s, l2, b)
			time.Sleep(2 * time.Second) // it reads what changed before it
			wantVersion(t, three, key("a"), 1)
		}
		wantVersion(t, two, key("a"), 1)
		if got := s.Lookups(key("a")) - before; got != 0 {
			t.Errorf("%d reads of a link that was put into L2", got)
		}
	})
}

// TestWarmDoesNotOutlastAChange: the link was changed by another process before it was put.
func TestWarmDoesNotOutlastAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		one, two := process(t, s, l2, b), process(t, s, l2, b)
		time.Sleep(calm)
		first := s.Put(key("a"), target("https://a.example/"))
		second := s.Put(key("a"), target("https://b.example/"))
		time.Sleep(5 * time.Second) // both have read the log
		one.Warm(made(key("a"), "https://a.example/", 1, 6*time.Second))
		synctest.Wait()
		e, ok := l2.Snapshot()[key("a")]
		if !ok || e.Version() != 1 || e.AsOf.At(0) >= first.Sequence {
			t.Fatalf("L2 holds %+v, want version 1 of before change %d and %d", e, first.Sequence, second.Sequence)
		}
		wantVersion(t, two, key("a"), 2)
		wantVersion(t, process(t, s, l2, b), key("a"), 2)
	})
}

func TestWarmTakesOnlyWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		one := process(t, s, l2, b)
		one.Warm(made(key("early"), "https://a.example/", 1, 0)) // no position is old enough
		time.Sleep(calm)
		one.Warm(made(key("old"), "https://a.example/", 1, 11*time.Second))
		one.Warm(made(key("future"), "https://a.example/", 1, -time.Second))
		bound := made(key("bound"), "https://a.example/", 1, 0)
		bound.MaxClicks = 5
		one.Warm(bound)
		synctest.Wait()
		if all := l2.Snapshot(); len(all) != 0 {
			t.Errorf("L2 holds %v", all)
		}
		one.Warm(made(key("new"), "https://a.example/", 1, 0))
		synctest.Wait()
		if all := l2.Snapshot(); len(all) != 1 {
			t.Errorf("L2 holds %v, want the new one", all)
		}
	})
}
