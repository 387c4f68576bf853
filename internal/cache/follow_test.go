package cache_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/link"
)

func follow(t *testing.T, c *cache.Tiered, s *cachetest.Source) {
	t.Helper()
	run(t, func(ctx context.Context) error { return c.Follow(ctx, s, time.Second) })
	synctest.Wait()
}

func TestFollowHearsOfChangesWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{Shared: true}, s)
		follow(t, c, s)
		wantVersion(t, c, key("a"), 1)
		wantVersion(t, c, key("new"), 0)
		for i := range 2500 { // more than two pages
			s.Put(key(fmt.Sprint("k", i)), target("https://a.example/"))
		}
		s.Put(key("a"), target("https://b.example/"))
		s.Put(key("new"), target("https://b.example/"))
		wantVersion(t, c, key("a"), 1)
		time.Sleep(time.Second)
		synctest.Wait()
		wantVersion(t, c, key("a"), 2)
		wantVersion(t, c, key("new"), 1)
	})
}

func TestFollowBeginsWithNothingOlderThanTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{Shared: true}, s)
		wantVersion(t, c, key("a"), 1)
		s.Put(key("a"), target("https://b.example/"))
		follow(t, c, s)
		wantVersion(t, c, key("a"), 2)
	})
}

func TestATrimmedPositionDropsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{Shared: true}, s)
		follow(t, c, s)
		wantVersion(t, c, key("a"), 1)
		s.Put(key("a"), target("https://b.example/"))
		s.Trim(2)
		time.Sleep(time.Second)
		synctest.Wait()
		wantVersion(t, c, key("a"), 2)
		c.Changed(s.Put(key("a"), target("https://c.example/")))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := c.Stats().Changes; got != 2 {
			t.Fatalf("%d changes heard, want the last one from us and from the log", got)
		}
	})
}

func TestALogThatLostItsEndDropsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{Shared: true}, s)
		follow(t, c, s)
		s.Put(key("a"), target("https://lost.example/"))
		time.Sleep(time.Second)
		synctest.Wait()
		wantVersion(t, c, key("a"), 2)
		s.Lose()
		time.Sleep(time.Second)
		synctest.Wait()
		wantVersion(t, c, key("a"), 1)
	})
}

func TestBehindGrowsWhileTheLogCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{Shared: true}, s)
		follow(t, c, s)
		wantVersion(t, c, key("a"), 1)
		s.SetDown(errAway)
		time.Sleep(6 * time.Second)
		if got := c.Staleness(); got < 5*time.Second {
			t.Fatalf("behind by %v after 6 s without the log", got)
		}
		wantVersion(t, c, key("a"), 1) // L1 is served on
		s.SetDown(nil)
		s.Put(key("a"), target("https://b.example/"))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := c.Staleness(); got > 0 {
			t.Fatalf("behind by %v after the log came back", got)
		}
		wantVersion(t, c, key("a"), 2)
		if got := newTiered(t, cache.Config{}, s).Staleness(); got != 0 {
			t.Fatalf("the only process of a store is behind by %v", got)
		}
	})
}

// hangingLog answers nothing until its context ends, then what the source does.
type hangingLog struct {
	*cachetest.Source
	hangs int
}

func (l *hangingLog) Changes(ctx context.Context, after link.Position, n int) ([]link.Change, link.Position, error) {
	if l.hangs > 0 {
		l.hangs--
		<-ctx.Done()
		return nil, "", context.Cause(ctx)
	}
	return l.Source.Changes(ctx, after, n)
}

func TestALogThatHangsIsAskedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		c := newTiered(t, cache.Config{Shared: true}, s)
		log := &hangingLog{Source: s, hangs: 1}
		run(t, func(ctx context.Context) error { return c.Follow(ctx, log, time.Second) })
		synctest.Wait()
		wantVersion(t, c, key("a"), 1)
		s.Put(key("a"), target("https://b.example/"))
		time.Sleep(8 * time.Second)
		synctest.Wait()
		wantVersion(t, c, key("a"), 2)
	})
}

// failingLog fails while down, with a source that answers.
type failingLog struct {
	*cachetest.Source
	down atomic.Bool
}

func (l *failingLog) Changes(ctx context.Context, after link.Position, n int) ([]link.Change, link.Position, error) {
	if l.down.Load() {
		return nil, "", errAway
	}
	return l.Source.Changes(ctx, after, n)
}

// TestUnknownIsBelievedForASecondWhileNobodyIsHeard has another process make links that were
// unknown here, which is told by a change log that cannot be read.
func TestUnknownIsBelievedForASecondWhileNobodyIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		c := newTiered(t, cache.Config{Shared: true}, s)
		log := &failingLog{Source: s}
		run(t, func(ctx context.Context) error { return c.Follow(ctx, log, time.Second) })
		synctest.Wait()
		wantVersion(t, c, key("before"), 0)
		log.down.Store(true)
		time.Sleep(2 * time.Second)
		s.Put(key("before"), target("https://a.example/"))
		wantVersion(t, c, key("before"), 0) // the control: believed since the log was read
		time.Sleep(time.Second)

		wantVersion(t, c, key("unheard"), 0)
		s.Put(key("unheard"), target("https://a.example/"))
		pass(time.Second)
		wantVersion(t, c, key("unheard"), 1)
	})
}
