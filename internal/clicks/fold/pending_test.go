package fold_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/background"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/fold"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/rollup/rolluptest"
	"curt/internal/link"
)

// What memory holds of a link is the same to both ways of asking, before and after it was
// summed up, and while a batch is on its way to the store.
func TestPendingCountsAreWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(rolluptest.Memory)
		l := begin(t, t.TempDir(), store, fold.Config{})
		defer l.end(t)
		synctest.Wait()
		c := clicklogtest.UsualClick()
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
					if row.Bucket.Granularity != rollup.Quarter {
						continue
					}
					for _, m := range row.Rollup.Minutes {
						byRow += m.Clicks
					}
				}
			}
			l.fold.PendingTotals([]link.Key{{Code: "other"}, k}, func(i int, _ uint64, total rollup.Total) {
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
		click(fold.FlushThreshold)
		check("after they were summed up")
		away := errors.New("the store is away")
		store.SetFault(func(rollup.Batch) (bool, error) { return false, away })
		time.Sleep(15 * time.Second) // a batch is frozen, and cannot be written
		click(3)
		check("beside a batch that waits")
		store.SetFault(nil)
	})
}

// slow yields for 100 ms.
type slow struct{ background.Inline }

func (slow) Yield() { time.Sleep(100 * time.Millisecond) }

// A stop counts no longer than closing time. What is left is counted by the next start.
func TestAStopLeavesALongLogToTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, store := t.TempDir(), new(rolluptest.Memory)
		const blocks, each = 300, 64
		l := begin(t, dir, store, fold.Config{Paused: true})
		for range blocks {
			for range each {
				l.ring.Record(clicklogtest.UsualClick())
			}
			l.drain(t)
		}
		l.end(t)
		l = begin(t, dir, store, fold.Config{Yielder: slow{}})
		time.Sleep(50 * time.Millisecond) // it yields for the first time
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
		l = begin(t, dir, store, fold.Config{})
		synctest.Wait()
		l.end(t)
		totals, _, err := store.Totals(t.Context(), []link.Key{{Code: link.Code(clicklogtest.UsualClick().Code)}})
		if err != nil || totals[0].Clicks != blocks*each {
			t.Errorf("%+v, %v; want %d clicks", totals, err, blocks*each)
		}
	})
}
