package fold_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/capture/capturetest"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/fold"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/rollup/rolluptest"
	"curt/internal/link"
	"curt/internal/testkit"
)

// life is one process: a log that was opened, a ring and the loops.
type life struct {
	ring    *capture.Ring
	log     *clicklog.Log
	capture *capture.Capture
	fold    *fold.Fold
	cancel  context.CancelFunc
	done    chan error
}

// begin starts a life on a folder. Capture is drained by the test, so that the
// test decides what the blocks are.
func begin(t *testing.T, dir string, store rollup.Store, c fold.Config) *life {
	t.Helper()
	log, err := clicklog.Open(clicklog.Config{Dir: dir, SegmentBytes: 20 << 10})
	if err != nil {
		t.Fatal(err)
	}
	l := &life{ring: capture.NewRing(capture.RingConfig{Bytes: 1 << 20, Shards: 2}), log: log, done: make(chan error, 1)}
	l.capture = capture.New(capture.Config{Ring: l.ring, Log: log, Keys: capturetest.Keys{}})
	c.Log, c.Store = log, store
	l.fold = fold.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	go func() { l.done <- l.fold.Run(ctx) }()
	return l
}

func (l *life) drain(t *testing.T) {
	t.Helper()
	if err := l.capture.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// end stops the life; what its Fold can still write it writes.
func (l *life) end(t *testing.T) {
	t.Helper()
	l.cancel()
	if err := <-l.done; err != nil {
		t.Error(err)
	}
	if err := l.log.Close(); err != nil {
		t.Error(err)
	}
}

// recounted is the naive model: what a link's counts must be.
type recounted struct {
	Total   rollup.Total
	Buckets map[rollup.Bucket]rollup.Counts
}

func naive(raws []*clicks.Raw) map[link.Key]*recounted {
	sums := map[link.Key]*recounted{}
	for _, c := range raws {
		k := link.Key{Code: link.Code(c.Code)}
		if c.Outcome == clicks.Orphan {
			k = link.Key{}
		}
		s := sums[k]
		if s == nil {
			s = &recounted{Buckets: map[rollup.Bucket]rollup.Counts{}}
			s.Total.FirstSeen = c.Time
			sums[k] = s
		}
		var n rollup.Counts
		answered := c.Outcome == clicks.Redirected || c.Outcome == clicks.Orphan
		switch preview := c.Flags&(clicks.Head|clicks.Prefetch) != 0; {
		case preview && answered:
			n.Previews = 1
		case preview:
		case answered:
			n.Clicks = 1
			if string(c.UserAgent) != "curl/8.5.0" {
				n.Humans = 1
			}
			s.Total.LastClicked = max(s.Total.LastClicked, c.Time)
		case c.Outcome == clicks.FellBack:
			n.Fallbacks = 1
		case c.Outcome == clicks.Refused:
			n.Refused = 1
		}
		s.Total.FirstSeen = min(s.Total.FirstSeen, c.Time)
		s.Total.Counts.Add(n)
		for _, g := range []rollup.Granularity{rollup.Quarter, rollup.Day} {
			b := rollup.BucketAt(g, time.UnixMilli(c.Time))
			sum := s.Buckets[b]
			sum.Add(n)
			s.Buckets[b] = sum
		}
	}
	return sums
}

// compareWithNaive compares a store that nothing is pending for.
func compareWithNaive(t *testing.T, store rollup.Store, raws []*clicks.Raw) {
	t.Helper()
	for k, want := range naive(raws) {
		first := rollup.BucketAt(rollup.Day, time.UnixMilli(want.Total.FirstSeen)).Ordinal
		stored, err := store.Read(t.Context(), k, 0,
			rollup.Span{Granularity: rollup.Day, First: first - 1, Last: first + 2},
			rollup.Span{Granularity: rollup.Quarter, First: first*96 - 96, Last: first*96 + 192})
		if err != nil {
			t.Fatal(err)
		}
		got := recounted{Total: stored.Total, Buckets: map[rollup.Bucket]rollup.Counts{}}
		for _, row := range stored.Rows {
			got.Buckets[row.Bucket] = row.Rollup.Counts
			dimensions := []clicks.Dimension{clicks.ReferrerHost, clicks.Device, clicks.Browser, clicks.OS, clicks.Trigger}
			sums := rollup.NewSums(dimensions...)
			one := rollup.Span{Granularity: row.Bucket.Granularity, First: row.Bucket.Ordinal, Last: row.Bucket.Ordinal}
			if _, err := store.Sum(t.Context(), k, sums, one); err != nil {
				t.Fatal(err)
			}
			for _, d := range dimensions {
				sum := uint64(0)
				for _, v := range sums.Values(d) {
					sum += v.Clicks
				}
				if k != (link.Key{}) && sum != row.Rollup.Clicks {
					t.Errorf("%s %+v: %d clicks by %s, %d in all", k, row.Bucket, sum, d, row.Rollup.Clicks)
				}
			}
		}
		if d := cmp.Diff(want, &got); d != "" {
			t.Errorf("%s differs from the recounted: %s", k, d)
		}
	}
}

var errDied = errors.New("the process died here")

// TestEveryClickCountsOnce lives many lives: each dies with a batch that was not
// applied, or that was applied without anybody knowing, or ends in order. In the
// end every click that reached the log is counted once.
func TestEveryClickCountsOnce(t *testing.T) { liveLives(t, 0, 2) }

// TestEveryClickCountsOnceInMoreLives is the same again, without the race detector.
func TestEveryClickCountsOnceInMoreLives(t *testing.T) {
	testkit.Unraced(t)
	liveLives(t, 2, 8)
}

func liveLives(t *testing.T, from, to uint64) {
	t.Helper()
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { liveAndDie(t, seed) })
		})
	}
}

func liveAndDie(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	dir, store := t.TempDir(), new(rolluptest.Memory)
	var raws []*clicks.Raw
	for range 12 {
		l := begin(t, dir, store, fold.Config{MaxBytes: 8 << 10})
		deaths, faults := r.IntN(3), rand.New(rand.NewPCG(seed, uint64(len(raws))))
		store.SetFault(func(b rollup.Batch) (bool, error) {
			if deaths == 0 || faults.IntN(3) > 0 {
				return true, nil
			}
			return deaths == 1, errDied
		})
		for range r.IntN(6) {
			for range r.IntN(300) {
				c := clicklogtest.RandomClick(r)
				raws = append(raws, c)
				l.ring.Record(c)
			}
			l.drain(t)
			time.Sleep(time.Duration(r.IntN(15)) * time.Second)
		}
		synctest.Wait()
		if deaths > 0 { // nothing of this life gets through any more
			store.SetFault(func(rollup.Batch) (bool, error) { return deaths == 1, errDied })
		}
		l.end(t)
	}
	store.SetFault(nil)
	l := begin(t, dir, store, fold.Config{})
	synctest.Wait()
	l.end(t)
	compareWithNaive(t, store, raws)
}

func TestStatisticsAreFreshAndWrittenEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(rolluptest.Memory)
		l := begin(t, t.TempDir(), store, fold.Config{})
		defer l.end(t)
		synctest.Wait()
		c := clicklogtest.UsualClick()
		c.Time = time.Now().UnixMilli()
		k := link.Key{Code: link.Code(c.Code)}
		l.ring.Record(c)
		time.Sleep(90 * time.Millisecond)
		l.drain(t)
		synctest.Wait()
		pending := l.fold.Pending(k)
		if len(pending) != 1 || pending[0].Total.Clicks != 1 {
			t.Fatalf("pending after the drain: %+v", pending)
		}
		time.Sleep(time.Second) // the watermark comes behind its block: Fold may have read before it, and looks each second
		synctest.Wait()
		if f := l.fold.Freshness(); time.Since(f.Complete) > 2*time.Second || time.Since(f.Updated) > time.Second {
			t.Errorf("freshness %+v at %v", f, time.Now())
		}
		if totals, _, err := store.Totals(t.Context(), []link.Key{k}); err != nil || totals[0].Clicks != 0 {
			t.Errorf("written at once: %+v, %v", totals, err)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if totals, _, err := store.Totals(t.Context(), []link.Key{k}); err != nil || totals[0].Clicks != 1 {
			t.Errorf("after 11 s: %+v, %v", totals, err)
		}
		if pending := l.fold.Pending(k); len(pending) != 0 {
			t.Errorf("still pending: %+v", pending)
		}
		if l.log.Synced().Compare(l.fold.Stats().Written) < 0 {
			t.Error("the position is past the log's last fsync")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := l.fold.Stats().Batches; n != 1 {
			t.Errorf("%d batches for one click", n)
		}
	})
}

func TestFoldWaitsForAStoreThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, r := new(rolluptest.Memory), rand.New(rand.NewPCG(3, 3))
		l := begin(t, t.TempDir(), store, fold.Config{MaxBytes: 32 << 10})
		synctest.Wait()
		var raws []*clicks.Raw
		raws = append(raws, clicklogtest.RandomClick(r))
		l.ring.Record(raws[0])
		l.drain(t)
		time.Sleep(20 * time.Second) // it is written
		synctest.Wait()
		written := l.fold.Stats()
		if fresh := l.fold.Freshness(); written.Batches != 1 || !written.Unstored.IsZero() || fresh.Complete.IsZero() {
			t.Fatalf("before: %+v, %+v", written, fresh)
		}
		failing := time.Now()
		store.SetFault(func(rollup.Batch) (bool, error) { return false, errors.New("disk full") })
		for range 40 {
			for range 100 {
				c := clicklogtest.RandomClick(r)
				raws = append(raws, c)
				l.ring.Record(c)
			}
			l.drain(t)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if s := l.fold.Stats(); s.BatchErrors == 0 || s.Events == 4001 || s.Batches != 1 || s.Written != written.Written || s.Unstored.Before(failing) {
			t.Errorf("%+v: want errors, and memory bounded so that events wait in the log", s)
		}
		if fresh := l.fold.Freshness(); fresh.Complete.After(failing) || fresh.Updated.After(failing) {
			t.Errorf("counts that cannot be written since %v are said to be complete until %v, updated %v", failing, fresh.Complete, fresh.Updated)
		}
		l.log.Trim(t.Context(), time.Now().AddDate(1, 0, 0)) // whatever is counted for good may go
		if behind := l.log.BytesAfter(written.Written); behind == 0 {
			t.Error("segments went whose counts are in memory alone")
		}
		store.SetFault(nil)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		compareWithNaive(t, store, raws)
		if s, fresh := l.fold.Stats(), l.fold.Freshness(); !s.Unstored.IsZero() || !fresh.Complete.After(failing) {
			t.Errorf("after it: %+v, %+v", s, fresh)
		}
		l.end(t)
	})
}

func TestPausedFoldLeavesTheLogAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dir := new(rolluptest.Memory), t.TempDir()
		l := begin(t, dir, store, fold.Config{Paused: true})
		c := clicklogtest.UsualClick()
		l.ring.Record(c)
		l.drain(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := l.fold.Stats().Events; n != 0 {
			t.Errorf("paused Fold counted %d events", n)
		}
		l.end(t)
		l = begin(t, dir, store, fold.Config{})
		synctest.Wait()
		l.end(t)
		compareWithNaive(t, store, []*clicks.Raw{c})
	})
}

func TestFoldPassesOverADamageAndCountsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, store := t.TempDir(), new(rolluptest.Memory)
		l := begin(t, dir, store, fold.Config{Paused: true})
		var raws []*clicks.Raw
		r := rand.New(rand.NewPCG(5, 5))
		for range 10 { // about 6 KiB each; three per segment
			for range 30 {
				c := clicklogtest.RandomClick(r)
				raws = append(raws, c)
				l.ring.Record(c)
			}
			l.drain(t)
		}
		l.end(t)
		files := clicklogtest.SegmentFiles(t, dir)
		const lost = 30 // the first block
		b, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		b[20] ^= 1
		if err := os.WriteFile(files[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		l = begin(t, dir, store, fold.Config{})
		synctest.Wait()
		if s := l.fold.Stats(); s.Damages != 1 || s.Events != uint64(len(raws)-lost) {
			t.Errorf("%+v, want one damage and %d events", s, len(raws)-lost)
		}
		c := clicklogtest.UsualClick()
		l.ring.Record(c)
		l.drain(t)
		synctest.Wait()
		if s := l.fold.Stats(); s.Events != uint64(len(raws)-lost+1) {
			t.Errorf("after the damage new clicks are not counted: %+v", s)
		}
		l.end(t)
	})
}

func TestFoldStopsWhenAnotherOneWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(rolluptest.Memory)
		one := begin(t, t.TempDir(), store, fold.Config{})
		two := begin(t, t.TempDir(), store, fold.Config{})
		synctest.Wait()
		one.ring.Record(clicklogtest.UsualClick())
		one.drain(t)
		one.end(t)
		two.ring.Record(clicklogtest.UsualClick())
		two.ring.Record(clicklogtest.UsualClick()) // or both would end at the same place of their logs
		two.drain(t)
		time.Sleep(11 * time.Second)
		if err := <-two.done; !errors.Is(err, rollup.ErrGeneration) {
			t.Errorf("Run = %v, want ErrGeneration", err)
		}
		two.cancel()
	})
}

// A clock that was 40 days ahead and came back leaves no promise about days to come, and
// what is complete goes on from the next drain.
func TestAClockThatCameBackPromisesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, t.TempDir(), new(rolluptest.Memory), fold.Config{})
		defer l.end(t)
		synctest.Wait()
		l.log.SetMark(time.Now().Add(40 * 24 * time.Hour).UTC())
		time.Sleep(3 * time.Second) // Fold looks each second
		synctest.Wait()
		if f := l.fold.Freshness(); f.Complete.After(time.Now()) {
			t.Errorf("ahead: complete until %v at %v", f.Complete, time.Now())
		}
		l.drain(t)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if f := l.fold.Freshness(); f.Complete.After(time.Now()) || time.Since(f.Complete) > 3*time.Second {
			t.Errorf("back: complete until %v at %v", f.Complete, time.Now())
		}
	})
}

// A promise that was true when Fold heard it may be ahead when somebody asks.
func TestAPromiseIsComparedWithTheClockOfWhoAsks(t *testing.T) {
	now := clicklogtest.SomeDay()
	for ahead, known := range map[time.Duration]bool{-time.Hour: true, 0: true, time.Millisecond: false, time.Hour: false} {
		if got := fold.NotAhead(now.Add(ahead), now); got.IsZero() == known {
			t.Errorf("%v ahead: %v", ahead, got)
		}
	}
}
