package cache_test

import (
	"context"
	"sync"
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

// What the log tells one process, it tells the others by the bus: they need not read it for
// each change.
func TestAChangeOfTheLogIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := cachetest.NewSource(), cachetest.NewBus()
		s.Put(key("a"), target("https://a.example/"))
		var mu sync.Mutex
		told := map[link.Sequence]int{}
		run(t, func(ctx context.Context) error {
			_ = b.Subscribe(ctx, func() {}, func(n cache.Note) {
				mu.Lock()
				defer mu.Unlock()
				for _, ch := range n.Changes {
					told[ch.Sequence]++
				}
			})
			return nil
		})
		synctest.Wait()
		process(t, s, nil, b)
		time.Sleep(5 * time.Second)
		alone := s.Put(key("a"), target("https://b.example/")) // nobody announces it
		time.Sleep(10 * time.Second)
		first, second := s.Put(key("a"), target("https://c.example/")), s.Put(key("b"), target("https://c.example/"))
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		for _, ch := range []link.Change{alone, first, second} {
			if told[ch.Sequence] != 1 {
				t.Errorf("change %d was told %d times, want once", ch.Sequence, told[ch.Sequence])
			}
		}
	})
}

// trimmed is a log whose beginning is gone; it counts who asks for that.
type trimmed struct {
	*cachetest.Source

	before atomic.Int64
	head   link.Sequence
}

func (l *trimmed) Changes(ctx context.Context, after link.Position, n int) ([]link.Change, link.Position, error) {
	if at, err := after.Sequence(); err != nil || at < l.head {
		l.before.Add(1)
		return nil, "", link.ErrConflict
	}
	return l.Source.Changes(ctx, after, n)
}

// What was trimmed from the log is asked for once.
func TestATrimmedBeginningIsNotAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &trimmed{Source: cachetest.NewSource()}
		for range 5 {
			log.head = log.Put(key("a"), target("https://a.example/")).Sequence
		}
		c := newTiered(t, cache.Config{Shared: true, Bus: cachetest.NewBus(), L2: cachetest.NewShared()}, log)
		run(t, c.Run)
		run(t, func(ctx context.Context) error { return c.Follow(ctx, log, time.Second) })
		time.Sleep(time.Minute)
		if n := log.before.Load(); n != 1 {
			t.Errorf("what is not in the log was asked for %d times", n)
		}
	})
}

// Every length of codes has its mark, the longest too.
func TestMarksOfAllLengthsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leased = 300_000_000
		mark := func(context.Context, int) (uint64, error) { return leased, nil }
		codes := issued.New(&aliases{}, codegen.NewCounts(decimal{}, mark))
		c := newTiered(t, cache.Config{Issued: codes}, cachetest.NewSource())
		run(t, c.Run)
		time.Sleep(5 * time.Second)
		for _, code := range []link.Code{"299999999", "0299999999", "0399999999"} {
			if codes.Never(code) {
				t.Errorf("%s, which may have been given out, is ruled out", code)
			}
		}
		if !codes.Never("0400000000") {
			t.Error("nothing is ruled out")
		}
	})
}
