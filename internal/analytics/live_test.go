package analytics_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/analytics"
	"curt/internal/link"
)

// counted is a Reader of counts that a test sets, and that knows how often it was asked.
type counted struct {
	analytics.Reader

	mu    sync.Mutex
	now   uint64 // these are guarded by mu
	err   error
	asked int
	keys  int
}

// says has it answer otherwise, and returns how often it was asked, and for how many keys.
func (c *counted) says(now uint64, err error) (asked, keys int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.err = now, err
	return c.asked, c.keys
}

func (c *counted) Clicks(_ context.Context, keys []link.Key) ([]uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	c.keys = len(keys)
	counts := make([]uint64, len(keys))
	for i := range counts {
		counts[i] = c.now
	}
	return counts, c.err
}

func watch(t *testing.T, l *analytics.Live, code link.Code, caller string) *analytics.Watch {
	t.Helper()
	w, err := l.Watch(link.Key{Domain: "curt.test", Code: code}, caller)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestEverybodyWhoWatchesIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts := &counted{now: 1}
		l := analytics.NewLive(counts)
		ended := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- l.Run(ctx) }()
		time.Sleep(time.Hour)
		if asked, _ := counts.says(1, nil); asked != 0 {
			t.Errorf("asked %d times while nobody watched", asked)
		}
		a, b, other := watch(t, l, "a", "x"), watch(t, l, "a", "y"), watch(t, l, "b", "x")
		synctest.Wait()
		began := time.Now()
		counts.says(7, nil)
		for _, w := range []*analytics.Watch{a, b, other} {
			for n := range w.Counts() {
				if n == 7 {
					break
				}
			}
		}
		if took := time.Since(began); took > 1500*time.Millisecond {
			t.Errorf("told after %v", took)
		}
		if _, keys := counts.says(7, errors.New("the disk is away")); keys != 2 {
			t.Errorf("%d keys in one question, want 2", keys)
		}
		time.Sleep(3 * time.Second)
		select {
		case n := <-a.Counts():
			t.Errorf("told %d of what could not be read", n)
		default:
		}
		counts.says(9, nil)
		time.Sleep(3 * time.Second)
		if n := <-a.Counts(); n != 9 { // the newest, not the first that was missed
			t.Errorf("told %d", n)
		}

		a.Close()
		a.Close()
		b.Close()
		other.Close()
		before, _ := counts.says(9, nil)
		time.Sleep(time.Hour)
		if after, _ := counts.says(9, nil); after > before+1 {
			t.Errorf("asked %d times after everybody had gone", after-before)
		}
		l.Close()
		l.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := l.Watch(link.Key{}, "x"); !errors.Is(err, analytics.ErrLiveEnded) {
			t.Errorf("watched after the end: %v", err)
		}
		select {
		case <-a.Ended():
		default:
			t.Error("a watch is not told of the end")
		}
	})
}

func TestWatchersAreBounded(t *testing.T) {
	l := analytics.NewLive(&counted{})
	var mine []*analytics.Watch
	for range analytics.MaxWatchersEach {
		mine = append(mine, watch(t, l, "a", "me"))
	}
	if _, err := l.Watch(link.Key{Code: "b"}, "me"); !errors.Is(err, analytics.ErrWatched) {
		t.Errorf("one more of a caller: %v", err)
	}
	mine[0].Close()
	watch(t, l, "b", "me")
	for i := range analytics.MaxWatchers - analytics.MaxWatchersEach {
		watch(t, l, "a", string(rune('A'+i/analytics.MaxWatchersEach)))
	}
	if _, err := l.Watch(link.Key{Code: "b"}, "somebody else"); !errors.Is(err, analytics.ErrWatched) {
		t.Errorf("one more of all: %v", err)
	}
}
