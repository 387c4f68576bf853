package ratelimit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/ratelimit"
)

// shared is a Ledger in memory that can be away or slow.
type shared struct {
	mu   sync.Mutex
	full map[uint64]time.Time
	away atomic.Bool
	hold chan struct{} // nil = answers at once; else one element lets one call through
	adds atomic.Int64
}

func newShared() *shared { return &shared{full: map[uint64]time.Time{}} }

func (s *shared) Add(ctx context.Context, spent []ratelimit.Spent) ([]ratelimit.Level, error) {
	s.adds.Add(1)
	if s.away.Load() {
		return nil, errors.New("away")
	}
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var levels []ratelimit.Level
	for _, b := range spent {
		at := s.full[b.Bucket]
		if at.Before(now) {
			at = now
		}
		s.full[b.Bucket] = at.Add(b.Add)
		levels = append(levels, ratelimit.Level{Bucket: b.Bucket, Full: s.full[b.Bucket].Sub(now)})
	}
	return levels, nil
}

func running(t *testing.T, th *ratelimit.Throttle) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = th.Run(ctx) }) // it has no error
	t.Cleanup(func() { cancel(); running.Wait() })
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// granted takes n cells of a bucket.
func granted(th *ratelimit.Throttle, bucket uint64, n int) (got int) {
	for range n {
		if th.Take(bucket, time.Now()) == 0 {
			got++
		}
	}
	return got
}

func TestAThrottleByItselfIsExact(t *testing.T) {
	now := time.Now()
	th := ratelimit.NewThrottle(ratelimit.Per(10, 10*time.Second), nil, now)
	for i := range 10 {
		if wait := th.Take(1, now); wait != 0 {
			t.Fatalf("cell %d: %v", i, wait)
		}
	}
	if wait := th.Take(1, now); wait != time.Second {
		t.Errorf("the eleventh: %v, want a second", wait)
	}
	if th.Peek(1, now) != time.Second || th.Peek(2, now) != 0 || th.Take(2, now) != 0 {
		t.Error("another bucket, or a peek, is not what it was")
	}
	if wait := th.Take(1, now.Add(time.Second)); wait != 0 {
		t.Errorf("after a second: %v", wait)
	}
	th.GiveBack(1)
	if wait := th.Take(1, now.Add(time.Second)); wait != 0 {
		t.Errorf("a cell that was given back: %v", wait)
	}
	if wait := th.Take(1, now.Add(-time.Hour)); wait <= time.Hour {
		t.Errorf("an hour before: %v; a clock that goes back gives nothing", wait)
	}
	if n := testing.AllocsPerRun(1000, func() { th.Take(3, now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAFloodFreesNoLimitedBucket has three times as many buckets as there is room for.
func TestAFloodFreesNoLimitedBucket(t *testing.T) {
	now := time.Now()
	th := ratelimit.NewThrottle(ratelimit.Per(10, time.Hour), nil, now)
	key := ratelimit.NewHashKey(make([]byte, 16))
	const limited = 500
	bucket := func(i int) uint64 { return key.Sum(string(rune(i)), "limited") }
	for i := range limited {
		for th.Take(bucket(i), now) == 0 {
		}
	}
	for i := range 400_000 {
		th.Take(key.Sum(string(rune(i)), "flood"), now)
	}
	for i := range limited {
		if th.Take(bucket(i), now) == 0 {
			t.Fatalf("limited bucket %d was reset by a flood", i)
		}
	}
}

// TestServersGrantALimitTogether bounds what three servers grant in two seconds, without the full
// bucket that they begin with.
func TestServersGrantALimitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, seconds = 1000, 2
		ledger := newShared()
		var servers [3]*ratelimit.Throttle
		for i := range servers {
			servers[i] = ratelimit.NewThrottle(ratelimit.Per(n, time.Second), ledger, time.Now())
			running(t, servers[i])
		}
		var sum atomic.Int64
		var wg sync.WaitGroup
		began := time.Now()
		for _, th := range servers {
			wg.Go(func() {
				for time.Since(began) < seconds*time.Second {
					sum.Add(int64(granted(th, 1, 20)))
					time.Sleep(time.Millisecond)
				}
			})
		}
		wg.Wait()
		took := time.Since(began).Seconds()
		least, most := 0.8*n*(took+1), 1.1*n*took+n+3*float64(servers[0].Batch())
		if got := float64(sum.Load()); got < least || got > most {
			t.Errorf("%v granted in %.2f s, want %.0f to %.0f", got, took, least, most)
		}
		if calls := ledger.adds.Load(); calls > 3*int64(took*n/10)+100 {
			t.Errorf("%d calls of the ledger: not in batches", calls)
		}
	})
}

// TestALedgerThatIsSlowIsNotWaitedFor has a server grant one batch and no more until it is answered.
func TestALedgerThatIsSlowIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := newShared()
		ledger.hold = make(chan struct{})
		th := ratelimit.NewThrottle(ratelimit.Per(1000, time.Hour), ledger, time.Now())
		running(t, th)
		if got := granted(th, 1, 1000); got != th.Batch() {
			t.Errorf("%d granted before the ledger answered, want a batch of %d", got, th.Batch())
		}
		close(ledger.hold)
		total := th.Batch()
		until(t, "the rest is granted", func() bool { total += granted(th, 1, 100); return total >= 1000 })
		if more := granted(th, 1, 100); total != 1000 || more != 0 {
			t.Errorf("%d granted and %d more, want 1000", total, more)
		}
	})
}

// TestWithoutALedgerEachServerGrantsTheLimit has it away, and back.
func TestWithoutALedgerEachServerGrantsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := newShared()
		ledger.away.Store(true)
		one, two := ratelimit.NewThrottle(ratelimit.Per(100, time.Hour), ledger, time.Now()), ratelimit.NewThrottle(ratelimit.Per(100, time.Hour), ledger, time.Now())
		running(t, one)
		running(t, two)
		for _, th := range []*ratelimit.Throttle{one, two} {
			total := 0
			until(t, "the limit is granted", func() bool { total += granted(th, 1, 10); return total >= 100 })
			if more := granted(th, 1, 10); total != 100 || more != 0 {
				t.Errorf("%d granted and %d more, want 100", total, more)
			}
		}
		granted(two, 2, 20)
		ledger.away.Store(false)
		until(t, "what was granted is known", func() bool {
			ledger.mu.Lock()
			defer ledger.mu.Unlock()
			granted(two, 2, 1)
			return !ledger.full[2].IsZero()
		})
	})
}

func BenchmarkTake(b *testing.B) {
	th := ratelimit.NewThrottle(ratelimit.Per(1<<30, time.Second), nil, time.Now())
	key := ratelimit.NewHashKey(make([]byte, 16))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			th.Take(key.Sum("links.example", "abcdefg"), time.Now())
		}
	})
}
