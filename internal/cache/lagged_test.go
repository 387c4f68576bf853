package cache_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
)

// TestAStaleReplicaIsNotSharedAsNew changes links in a store whose replica is behind by as
// much as it may be, and looks each up at another moment of that time: what goes into L2 of
// before a change does not claim to be of after it.
func TestAStaleReplicaIsNotSharedAsNew(t *testing.T) {
	const lag = 5 * time.Second
	for _, declared := range []time.Duration{lag, 0} {
		t.Run(fmt.Sprint("declared ", declared), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wrong := shareOfReplica(t, lag, declared)
				switch {
				case declared == lag && wrong > 0:
					t.Errorf("%d entries of before a change claim to be of after it", wrong)
				case declared == 0 && wrong == 0: // the control: nobody said that it lags
					t.Error("no entry was wrong: the test proves nothing")
				}
			})
		})
	}
}

// shareOfReplica returns how many entries of L2 are wrong about when they were read.
func shareOfReplica(t *testing.T, lag, declared time.Duration) (wrong int) {
	s, l2 := cachetest.NewSource(), cachetest.NewShared()
	lagging := func() *cache.Tiered {
		c := newTiered(t, cache.Config{Shared: true, L2: l2, Lag: declared}, s)
		run(t, c.Run)
		follow(t, c, s)
		return c
	}
	one, two := lagging(), lagging()
	const links = 70
	for i := range links {
		s.Put(key(fmt.Sprint("k", i)), target("https://a.example/"))
	}
	time.Sleep(30 * time.Second)
	for i := range links {
		k := key(fmt.Sprint("k", i))
		s.SetReplica(k, 1)
		ch := s.Put(k, target("https://b.example/"))
		time.AfterFunc(lag, func() { s.SetReplica(k, -1) })
		time.Sleep(time.Duration(i) * 100 * time.Millisecond)
		if _, err := one.Lookup(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if e, ok := l2.Snapshot()[k]; ok && e.Version() == 1 && e.AsOf.At(0) >= ch.Sequence {
			wrong++
		}
		time.Sleep(2 * time.Second)
		if got, err := two.Lookup(t.Context(), k); declared > 0 && (err != nil || got.Version < 2) {
			t.Errorf("%s: version %d, %v, two seconds and more after the change", k, got.Version, err)
		}
		time.Sleep(lag)
	}
	return wrong
}
