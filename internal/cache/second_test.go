package cache_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/link"
	"curt/internal/testkit"
)

func TestModelsKeepTheirContracts(t *testing.T) {
	t.Run("shared", func(t *testing.T) {
		cachetest.RunShared(t, func(*testing.T) (one, again cache.Shared) {
			s := cachetest.NewShared()
			return s, s
		})
	})
	t.Run("bus", func(t *testing.T) {
		cachetest.RunBus(t, func(*testing.T) (one, again cache.Bus) {
			b := cachetest.NewBus()
			return b, b
		})
	})
}

// process is one of several over a store, an L2 and a bus.
func process(t *testing.T, s *cachetest.Source, l2 *cachetest.Shared, b cache.Bus) *cache.Tiered {
	t.Helper()
	cfg := cache.Config{Shared: true, Bus: b}
	if l2 != nil {
		cfg.L2 = l2
	}
	c := newTiered(t, cfg, s)
	run(t, c.Run)
	follow(t, c, s)
	return c
}

func TestALinkIsReadOnceByAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		s.Put(key("a"), target("https://a.example/"))
		for range 5 {
			c := process(t, s, l2, b)
			time.Sleep(2 * time.Second) // what was there before is vouched for
			wantVersion(t, c, key("a"), 1)
			wantVersion(t, c, key("none"), 0)
			synctest.Wait()
		}
		wantLookups(t, s, key("a"), 1)
		wantLookups(t, s, key("none"), 1)
	})
}

func TestAKilledLinkIsDeadEverywhereByTheNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		s.Put(key("a"), target("https://a.example/"))
		one, two := process(t, s, l2, b), process(t, s, l2, b)
		wantVersion(t, one, key("a"), 1)
		wantVersion(t, two, key("a"), 1)
		time.Sleep(100 * time.Millisecond) // between two beats
		polls := s.Polls()
		one.Announce(s.Put(key("a"), target("https://b.example/")))
		wantVersion(t, one, key("a"), 2)
		synctest.Wait() // no time goes by
		wantVersion(t, two, key("a"), 2)
		time.Sleep(50 * time.Millisecond)
		if got := s.Polls() - polls; got != 1 {
			t.Errorf("the log was read %d times for a change, want once, by who made it", got)
		}
		if got := two.Stats().Gaps; got > 1 { // one of the start
			t.Errorf("%d gaps without one", got)
		}
	})
}

// TestNothingThatL2BringsBackIsBelieved restores what L2 held before a change, as a server
// does that starts from an old file, or a replica that was behind when it was promoted.
func TestNothingThatL2BringsBackIsBelieved(t *testing.T) {
	for _, heard := range []bool{true, false} {
		t.Run(fmt.Sprint("heard ", heard), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
				s.Put(key("a"), target("https://a.example/"))
				one := process(t, s, l2, b)
				wantVersion(t, one, key("a"), 1)
				synctest.Wait()
				old := l2.Snapshot()
				if len(old) != 1 {
					t.Fatalf("L2 holds %v", old)
				}
				ch := s.Put(key("a"), target("https://b.example/"))
				if heard {
					one.Announce(ch)
				} else { // by somebody who died at once
					time.Sleep(5 * time.Second)
				}
				time.Sleep(time.Second)
				l2.Restore(old)
				wantVersion(t, one, key("a"), 2)
				l2.Restore(old)
				two := process(t, s, l2, b) // began after the change
				wantVersion(t, two, key("a"), 2)
				l2.Restore(old)
				time.Sleep(2 * time.Second)
				three := process(t, s, l2, b)
				time.Sleep(2 * time.Second) // and recalled it
				wantVersion(t, three, key("a"), 2)
			})
		})
	}
}

func TestAnOldEntryThatNothingOverturnedIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		s.Put(key("a"), target("https://a.example/"))
		one := process(t, s, l2, b)
		wantVersion(t, one, key("a"), 1)
		for i := range 5000 { // five pages of the log
			s.Put(key(fmt.Sprint("other", i)), target("https://a.example/"))
		}
		time.Sleep(5 * time.Second)
		two := process(t, s, l2, b)
		time.Sleep(2 * time.Second)
		wantVersion(t, two, key("a"), 1)
		wantLookups(t, s, key("a"), 1)
		if got := two.Stats(); got.SharedHits != 1 || got.SharedOld != 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestWithoutL2OrBusNothingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		s.Put(key("a"), target("https://a.example/"))
		l2.SetDown(errAway)
		b.SetDown(errAway)
		one, two := process(t, s, l2, b), process(t, s, l2, b)
		wantVersion(t, one, key("a"), 1)
		wantVersion(t, two, key("a"), 1)
		time.Sleep(5 * time.Second)
		one.Announce(s.Put(key("a"), target("https://b.example/")))
		time.Sleep(time.Second)
		synctest.Wait()
		wantVersion(t, two, key("a"), 2)
		if got := two.Staleness(); got > time.Second {
			t.Errorf("behind by %v with the log at hand", got)
		}
	})
}

func TestASilentBusIsNotReliedUpon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := cachetest.NewSource(), cachetest.NewBus()
		one := process(t, s, nil, b)
		time.Sleep(10 * time.Second)
		if got := one.BusSilent(); got > 2*time.Second {
			t.Errorf("silent for %v while each second something is said", got)
		}
		b.SetSilent(true)
		time.Sleep(500 * time.Millisecond)
		for i := range 100 {
			k := key(fmt.Sprint("k", i))
			s.Put(k, target("https://a.example/"))
			wantVersion(t, one, k, 1)
			s.Put(k, target("https://b.example/"))
			time.Sleep(4 * time.Second)
			synctest.Wait()
			wantVersion(t, one, k, 2)
		}
		if got := one.BusSilent(); got < time.Minute {
			t.Errorf("silent for %v only", got)
		}
	})
}

func TestACutSubscriptionReadsTheLogAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := cachetest.NewSource(), cachetest.NewBus()
		s.Put(key("a"), target("https://a.example/"))
		one := process(t, s, nil, b)
		time.Sleep(1500 * time.Millisecond)
		wantVersion(t, one, key("a"), 1)
		s.Put(key("a"), target("https://b.example/"))
		b.Cut()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		wantVersion(t, one, key("a"), 2)
	})
}

func TestReadyWhileTheBusIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := cachetest.NewSource(), cachetest.NewBus()
		s.Put(key("a"), target("https://a.example/"))
		one := process(t, s, nil, b)
		time.Sleep(3 * time.Second)
		s.SetDown(errAway)
		time.Sleep(time.Minute)
		if got := one.Staleness(); got > 5*time.Second {
			t.Errorf("behind by %v while the bus is heard", got)
		}
		b.SetDown(errAway)
		time.Sleep(6 * time.Second)
		if got := one.Staleness(); got <= 5*time.Second {
			t.Errorf("behind by %v with neither log nor bus", got)
		}
	})
}

func TestALinkWithABoundOfClicksIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		s.Put(key("a"), link.Target{Destination: "https://a.example/", Limited: true})
		one := process(t, s, l2, b)
		for range 3 {
			wantVersion(t, one, key("a"), 1)
			synctest.Wait()
		}
		wantLookups(t, s, key("a"), 3)
		if all := l2.Snapshot(); len(all) != 0 {
			t.Errorf("L2 holds %v", all)
		}
		if got := l2.Gets(); got != 1 {
			t.Errorf("L2 was asked %d times, want once", got)
		}
	})
}

func TestAnExpiredLinkIsNotSharedPastItsExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		now := time.Now()
		s.Put(key("soon"), link.Target{Destination: "https://a.example/", Expires: now.Add(time.Hour).UnixMilli()})
		s.Put(key("past"), link.Target{Destination: "https://a.example/", Expires: now.Add(-time.Hour).UnixMilli()})
		s.Put(key("never"), target("https://a.example/"))
		one := process(t, s, l2, b)
		for _, c := range []string{"soon", "past", "never"} {
			wantVersion(t, one, key(c), 1)
		}
		synctest.Wait()
		all := l2.Snapshot()
		if got := all[key("soon")].Until.Sub(now); got > time.Hour {
			t.Errorf("shared for %v, past its expiry", got)
		}
		if got := all[key("past")].Until.Sub(now); got > time.Minute {
			t.Errorf("an expired link is shared for %v", got)
		}
		if got := all[key("never")].Until.Sub(now); got < 21*time.Hour || got > 27*time.Hour {
			t.Errorf("shared for %v, want about a day", got)
		}
	})
}

// TestUnknownIsSharedForAMinute looks at the end of an "unknown" in L2: creates of counted codes
// are not in the change log, so nothing else ends it for the other processes.
func TestUnknownIsSharedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		one := process(t, s, l2, b)
		now := time.Now()
		wantVersion(t, one, key("none"), 0)
		synctest.Wait()
		e, shared := l2.Snapshot()[key("none")]
		if !shared || !e.Missing {
			t.Fatalf("L2 holds %+v, %v; want an unknown", e, shared)
		}
		if got := e.Until.Sub(now); got <= 0 || got > time.Minute {
			t.Errorf("unknown is shared for %v, want at most a minute", got)
		}
	})
}

func TestL2NeedsTheChangeLog(t *testing.T) {
	if _, err := cache.New(cache.Config{L2: cachetest.NewShared()}, cachetest.NewSource()); err == nil {
		t.Error("an L2 that nobody vouches for was taken")
	}
}

func TestOneReadOfAStampede(t *testing.T) {
	testkit.Unraced(t)
	synctest.Test(t, func(t *testing.T) {
		s, l2, b := cachetest.NewSource(), cachetest.NewShared(), cachetest.NewBus()
		s.Put(key("a"), target("https://a.example/"))
		s.OnLookup(func(context.Context, link.Key) error { time.Sleep(10 * time.Millisecond); return nil })
		all := []*cache.Tiered{process(t, s, l2, b), process(t, s, l2, b), process(t, s, l2, b)}
		time.Sleep(2 * time.Second)
		for range 600 {
			for _, c := range all {
				go func() { _, _ = c.Lookup(context.Background(), key("a")) }()
			}
			time.Sleep(100 * time.Microsecond)
		}
		synctest.Wait()
		if got := s.Lookups(key("a")); got > len(all) {
			t.Errorf("%d reads by %d processes", got, len(all))
		}
		time.Sleep(time.Hour) // past freshness
		before := s.Lookups(key("a"))
		for _, c := range all {
			for range 100 {
				go func() { _, _ = c.Lookup(context.Background(), key("a")) }()
			}
		}
		time.Sleep(time.Second)
		if got := s.Lookups(key("a")) - before; got != 0 {
			t.Errorf("%d reads of what L2 holds", got)
		}
		time.Sleep(48 * time.Hour) // past the end of all that is held
		for range 1000 {
			for _, c := range all {
				go func() { _, _ = c.Lookup(context.Background(), key("a")) }()
			}
		}
		time.Sleep(time.Second)
		if got := s.Lookups(key("a")) - before; got == 0 || got > len(all) {
			t.Errorf("%d reads by %d processes of a link that everybody wants and nobody holds any more", got, len(all))
		}
	})
}
