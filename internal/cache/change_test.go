package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/link"
)

func TestAnnouncedCreateEndsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		c := newTiered(t, cache.Config{}, s)
		wantVersion(t, c, key("new"), 0)
		c.Changed(s.Put(key("new"), target("https://a.example/")))
		wantVersion(t, c, key("new"), 1)
	})
}

func TestACountedCodeEndsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		c := newTiered(t, cache.Config{}, s)
		wantVersion(t, c, key("new"), 0)
		s.Put(key("new"), target("https://a.example/"))
		wantVersion(t, c, key("new"), 0) // the control: still believed unknown
		c.Created(key("new"))
		wantVersion(t, c, key("new"), 1)
	})
}

func TestAnOldChangeDropsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		old := s.Put(key("a"), target("https://a.example/"))
		s.Put(key("a"), target("https://b.example/"))
		c := newTiered(t, cache.Config{}, s)
		wantVersion(t, c, key("a"), 2)
		c.Changed(old, old)
		wantVersion(t, c, key("a"), 2)
		wantLookups(t, s, key("a"), 1)
	})
}

func TestALoadOvertakenByAChangeAsksThePrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{}, s)
		release := make(chan struct{})
		s.OnLookup(func(context.Context, link.Key) error { <-release; return nil })
		results := make(chan link.Version, 2)
		look := func() {
			got, _ := c.Lookup(context.Background(), key("a"))
			results <- got.Version
		}
		go look()
		synctest.Wait() // version 1 was read and is on its way
		c.Changed(s.Put(key("a"), target("https://b.example/")))
		go look() // joins the load that began before the change
		synctest.Wait()
		close(release)
		for range 2 {
			if got := <-results; got != 2 {
				t.Errorf("a look-up that ended after the change got version %d", got)
			}
		}
		wantVersion(t, c, key("a"), 2)
		if s.Lookups(key("a")) != 1 || s.Gets(key("a")) != 1 {
			t.Errorf("%d look-ups and %d gets, want 1 and 1", s.Lookups(key("a")), s.Gets(key("a")))
		}
	})
}

func TestForTheLagOfAReplicaThePrimaryIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		c := newTiered(t, cache.Config{Lag: 10 * time.Second}, s)
		s.Put(key("a"), target("https://a.example/"))
		ch := s.Put(key("a"), target("https://b.example/"))
		s.SetReplica(key("a"), 1)
		c.Changed(ch)
		wantVersion(t, c, key("a"), 2)
		wantLookups(t, s, key("a"), 0)
		time.Sleep(10 * time.Second)
		s.SetReplica(key("a"), -1)
		c.Changed(s.Put(key("b"), target("https://b.example/"))) // clears what is over
		pass(time.Hour)
		wantVersion(t, c, key("a"), 2)
		wantLookups(t, s, key("a"), 1)
	})
}

// TestTheLagBeginsAnewWithEachChange changes a key again before the lag of its first change is
// over, and lets that end: what a process then clears away is not what the second one needs.
func TestTheLagBeginsAnewWithEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		c := newTiered(t, cache.Config{Lag: 10 * time.Second}, s)
		s.Put(key("a"), target("https://a.example/"))
		s.SetReplica(key("a"), 1)
		c.Changed(s.Put(key("a"), target("https://b.example/")))
		time.Sleep(6 * time.Second)
		c.Changed(s.Put(key("a"), target("https://c.example/")))
		pass(4 * time.Second)
		for i := range 2000 { // clears what is over, in the part of the keys that has a, too
			c.Changed(s.Put(key(fmt.Sprint("other", i)), target("https://b.example/")))
		}
		wantVersion(t, c, key("a"), 3)
		wantLookups(t, s, key("a"), 0)
	})
}

func TestAReplicaBehindL1IsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		s.Put(key("a"), target("https://b.example/"))
		c := newTiered(t, cache.Config{Lag: time.Second}, s)
		wantVersion(t, c, key("a"), 2)
		pass(time.Hour)
		s.SetReplica(key("a"), 1)
		wantVersion(t, c, key("a"), 2)
	})
}

func TestAPrimaryBelowAnAnnouncedVersionIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{Lag: time.Second}, s)
		c.Changed(link.Change{Key: key("a"), Version: 7})
		if _, err := c.Lookup(t.Context(), key("a")); !errors.Is(err, link.ErrUnavailable) {
			t.Fatalf("got %v, want ErrUnavailable", err)
		}
	})
}

func TestDropAllRepeatsLoadsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		s.Put(key("held"), target("https://a.example/"))
		c := newTiered(t, cache.Config{}, s)
		wantVersion(t, c, key("held"), 1)
		release := make(chan struct{})
		s.OnLookup(func(context.Context, link.Key) error { <-release; return nil })
		result := make(chan link.Version, 1)
		go func() {
			got, _ := c.Lookup(context.Background(), key("a"))
			result <- got.Version
		}()
		synctest.Wait()
		s.Put(key("a"), target("https://b.example/")) // nobody announces it
		s.Put(key("held"), target("https://b.example/"))
		c.DropAll()
		close(release)
		if got := <-result; got != 2 {
			t.Errorf("the load under way gave version %d", got)
		}
		wantVersion(t, c, key("held"), 2)
	})
}

func TestDropAllReadsThePrimaryForTheLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		s.Put(key("a"), target("https://b.example/"))
		s.SetReplica(key("a"), 1)
		c := newTiered(t, cache.Config{Lag: time.Second}, s)
		c.DropAll()
		wantVersion(t, c, key("a"), 2)
	})
}

// TestNothingOlderThanAnnounced lets writers, announcers and readers run freely, for
// the race detector and for what no schedule of ours would try.
func TestNothingOlderThanAnnounced(t *testing.T) {
	const keys, changes, readers = 8, 2000, 8
	s := cachetest.NewSource()
	c := newTiered(t, cache.Config{Bytes: 1 << 20, Fresh: time.Millisecond}, s)
	run(t, c.Run)
	var mu sync.Mutex
	announced := map[link.Key]link.Version{}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				k := key(fmt.Sprint("k", i%keys))
				mu.Lock()
				least := announced[k]
				mu.Unlock()
				got, err := c.Lookup(context.Background(), k)
				if (err != nil && !errors.Is(err, link.ErrNotFound)) || got.Version < least {
					t.Errorf("%s: version %d, %v, but %d was announced before", k, got.Version, err, least)
					return
				}
			}
		})
	}
	for i := range changes {
		k := key(fmt.Sprint("k", i%keys))
		ch := s.Put(k, target("https://a.example/"))
		c.Changed(ch)
		mu.Lock()
		announced[k] = ch.Version
		mu.Unlock()
	}
	close(done)
	wg.Wait()
}
