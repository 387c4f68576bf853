package clicks_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/clickstest"
	"curt/internal/link"
)

// slowSink answers when the test says so.
type slowSink struct {
	mu   sync.Mutex
	sent []uint64      // guarded by mu: first sequence of each block, in the order of sending
	done []func(error) // guarded by mu
}

func (s *slowSink) Send(_ context.Context, b *clicks.Block, done func(error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.done = append(s.sent, b.First.Sequence), append(s.done, done)
	return nil
}

func (*slowSink) Promise(context.Context, uint64, int64) error { return nil }

// answer answers the i-th Send.
func (s *slowSink) answer(i int, err error) {
	s.mu.Lock()
	done := s.done[i]
	s.mu.Unlock()
	done(err)
	synctest.Wait()
}

func (s *slowSink) order() string { s.mu.Lock(); defer s.mu.Unlock(); return fmt.Sprint(s.sent) }

// A block that was not delivered is sent again by the same Shipper, with those behind it;
// late answers about what was given up change nothing.
func TestABlockThatFailedIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, sink := t.TempDir(), new(slowSink)
		log := openLog(t, clicks.LogConfig{Dir: dir})
		shipper := clicks.NewShipper(clicks.ShipperConfig{Log: log, Sink: sink, State: filepath.Join(dir, "shipped"), Instance: 7})
		for i := range uint64(3) {
			appendOne(t, log, i, someDay())
		}
		if err := log.Sync(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- shipper.Run(ctx) }()
		synctest.Wait()
		sink.answer(0, nil)
		sink.answer(1, errors.New("no answer"))
		if s := shipper.Stats(); s.Events != 1 || s.Failures != 1 || s.Err == nil {
			t.Errorf("after a failure: %+v", s)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := sink.order(); got != "[0 1 2 1 2]" {
			t.Fatalf("sent %s, want [0 1 2 1 2]", got)
		}
		sink.answer(2, errors.New("no answer either")) // of the run that was given up
		sink.answer(1, nil)
		if s := shipper.Stats(); s.Events != 1 || s.Failures != 1 || s.Err != nil {
			t.Errorf("after late answers: %+v", s)
		}
		sink.answer(4, nil) // not in order: the one before may still fail
		if s := shipper.Stats(); s.Events != 1 {
			t.Errorf("acknowledged past a block that is on its way: %+v", s)
		}
		sink.answer(3, nil)
		if s := shipper.Stats(); s.Events != 3 || s.Blocks != 3 || s.Acked != log.End() {
			t.Errorf("at the end: %+v", s)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A position that cannot be written leaves nothing beside it.
func TestAPositionThatCannotBeKeptLeavesNoFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		state := filepath.Join(dir, "shipped")
		log := openLog(t, clicks.LogConfig{})
		shipper := clicks.NewShipper(clicks.ShipperConfig{Log: log, Sink: new(slowSink), State: state, Instance: 7})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- shipper.Run(ctx) }()
		synctest.Wait() // it has written its first position
		if err := os.Remove(state); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(state, "in the way"), 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err == nil {
			t.Error("the position was written over a folder")
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%v are left, %v", left, err)
		}
	})
}

// What memory holds of a link is the same to both ways of asking, before and after it was
// summed up, and while a batch is on its way to the store.
func TestPendingCountsAreWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(clickstest.Memory)
		l := begin(t, t.TempDir(), store, clicks.FoldConfig{})
		defer l.end(t)
		synctest.Wait()
		c := usualClick()
		k := link.Key{Code: link.Code(c.Code)}
		want := uint64(0)
		check := func(when string) {
			t.Helper()
			l.drain(t)
			synctest.Wait()
			var byKey, byRow, byTotals uint64
			for _, p := range l.fold.Pending(k) {
				byKey += p.Total.Clicks
				for _, row := range p.Rows {
					if row.Bucket.Granularity != clicks.Quarter {
						continue
					}
					for _, m := range row.Rollup.Minutes {
						byRow += m.Clicks
					}
				}
			}
			l.fold.PendingTotals([]link.Key{{Code: "other"}, k}, func(i int, _ uint64, total clicks.Total) {
				if i != 1 {
					t.Errorf("%s: totals of key %d", when, i)
				}
				byTotals += total.Clicks
			})
			if byKey != want || byRow != want || byTotals != want {
				t.Errorf("%s: %d pending by key, %d by minute, %d by totals; want %d", when, byKey, byRow, byTotals, want)
			}
		}
		click := func(n int) {
			for range n {
				c.Time = time.Now().UnixMilli()
				l.ring.Record(c)
			}
			want += uint64(n)
		}
		check("before a click")
		click(5)
		check("after a few")
		click(clicks.Crowd)
		check("after they were summed up")
		away := errors.New("the store is away")
		store.SetFault(func(clicks.Batch) (bool, error) { return false, away })
		time.Sleep(15 * time.Second) // a batch is frozen, and cannot be written
		click(3)
		check("beside a batch that waits")
		store.SetFault(nil)
	})
}

// mute takes blocks, and promises until it is told not to.
type mute struct {
	slowSink

	refuses bool // guarded by mu
}

func (m *mute) Promise(context.Context, uint64, int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuses {
		return errors.New("not now")
	}
	return nil
}

// A promise that cannot be given is a failure like one of sending: it is told, and tried
// again.
func TestAPromiseThatFailsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(mute)
		shipper := clicks.NewShipper(clicks.ShipperConfig{
			Log: openLog(t, clicks.LogConfig{}), Sink: sink, State: filepath.Join(t.TempDir(), "shipped"), Instance: 7,
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- shipper.Run(ctx) }()
		refuse := func(refuses bool) {
			sink.mu.Lock()
			sink.refuses = refuses
			sink.mu.Unlock()
			time.Sleep(time.Minute)
			synctest.Wait()
			if s := shipper.Stats(); (s.Err != nil) != refuses || (s.Failures > 0) != refuses && refuses {
				t.Errorf("while promises are refused %t: %+v", refuses, s)
			}
		}
		refuse(false)
		refuse(true)
		refuse(false)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A stop counts no longer than closing time. What is left is counted by the next start.
func TestAStopLeavesALongLogToTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, store := t.TempDir(), new(clickstest.Memory)
		const blocks, each = 300, 64
		l := begin(t, dir, store, clicks.FoldConfig{Paused: true})
		for range blocks {
			for range each {
				l.ring.Record(usualClick())
			}
			l.drain(t)
		}
		l.end(t)
		l = begin(t, dir, store, clicks.FoldConfig{Rest: func() { time.Sleep(100 * time.Millisecond) }})
		time.Sleep(50 * time.Millisecond) // it rests for the first time
		l.cancel()
		if err := <-l.done; err != nil {
			t.Fatal(err)
		}
		counted := l.fold.Stats().Events
		if counted == 0 || counted >= blocks*each {
			t.Errorf("%d of %d clicks were counted in closing time", counted, blocks*each)
		}
		if err := l.log.Close(); err != nil {
			t.Fatal(err)
		}
		l = begin(t, dir, store, clicks.FoldConfig{})
		synctest.Wait()
		l.end(t)
		totals, _, err := store.Totals(t.Context(), []link.Key{{Code: link.Code(usualClick().Code)}})
		if err != nil || totals[0].Clicks != blocks*each {
			t.Errorf("%+v, %v; want %d clicks", totals, err, blocks*each)
		}
	})
}
