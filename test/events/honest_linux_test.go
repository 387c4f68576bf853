package events_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/backend/clickhouse"
)

// watcher asks again and again up to when clicks are complete, and then how many of each
// instance are there from before that time. Whether it was true shows at the end, when the
// click logs say how many there are.
type watcher struct {
	p     *plant
	store *clickhouse.Store
	wg    sync.WaitGroup
	stop  context.CancelFunc

	mu    sync.Mutex
	all   []sample // guarded by mu
	rises int      // guarded by mu: times that it was later than before
}

// sample is what was found at one time.
type sample struct {
	complete time.Time
	lie      time.Time                 // what is certainly said too early: the present
	known    map[uint64]bool           // instances that had promised something before, while they lived
	there    map[uint64]map[bool]int64 // by instance: before complete, and, under true, before lie
}

func (p *plant) watch(t *testing.T, every time.Duration) *watcher {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &watcher{p: p, store: p.store(t), stop: stop}
	w.wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			s, err := w.look(ctx, n)
			if err != nil || s.complete.IsZero() {
				continue // ClickHouse dies, too
			}
			last := w.latest()
			w.mu.Lock()
			if s.complete.After(last) {
				w.rises++
			}
			w.all = append(w.all, s)
			w.mu.Unlock()
		}
	})
	return w
}

// look asks in an order in which no news between two questions makes a promise look broken.
func (w *watcher) look(ctx context.Context, n int) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	text, err := w.p.clickhouse.Ask(ctx, "SELECT instance FROM "+w.p.database+".watermarks WHERE instance != 0 GROUP BY instance HAVING min(first) < 9223372036854775807")
	if err != nil {
		return s, err
	}
	s.known, s.there = map[uint64]bool{}, map[uint64]map[bool]int64{}
	for line := range strings.Lines(text) {
		var instance uint64
		if _, err := fmt.Sscan(line, &instance); err != nil {
			return s, err
		}
		s.known[instance] = true
	}
	// The time given is one at which no earlier answer is good any more.
	progress, err := w.store.Progress(ctx, time.Now().Add(time.Duration(n)*time.Hour))
	if err != nil {
		return s, err
	}
	s.complete, s.lie = progress.Complete, w.p.now()
	text, err = w.p.clickhouse.Ask(ctx, fmt.Sprintf("SELECT instance, countIf(toUnixTimestamp64Milli(time) < %d), countIf(toUnixTimestamp64Milli(time) < %d) FROM %s.clicks GROUP BY instance",
		s.complete.UnixMilli(), s.lie.UnixMilli(), w.p.database))
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(text) {
		var instance uint64
		var before, lie int64
		if _, err := fmt.Sscan(line, &instance, &before, &lie); err != nil {
			return s, err
		}
		s.there[instance] = map[bool]int64{false: before, true: lie}
	}
	return s, nil
}

// latest returns what was found last.
func (w *watcher) latest() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) == 0 {
		return time.Time{}
	}
	return w.all[len(w.all)-1].complete
}

var errLate = errors.New("clicks that were said to be complete came later")

// judge ends the watcher and compares what it found with the click logs.
func (w *watcher) judge(t *testing.T, logs map[uint64][]event) {
	t.Helper()
	w.stop()
	w.wg.Wait()
	times := map[uint64][]int64{}
	for instance, all := range logs {
		for _, e := range all {
			times[instance] = append(times[instance], e.at)
		}
		slices.Sort(times[instance])
	}
	refuted := 0
	for _, s := range w.all {
		if err := s.check(times, s.complete, false); err != nil {
			t.Error(err)
		}
		if s.check(times, s.lie, true) != nil {
			refuted++
		}
	}
	t.Logf("complete_until was asked for %d times, rose %d times, and was true each time; the present instead would have been wrong %d times", len(w.all), w.rises, refuted)
	if w.rises == 0 || refuted == 0 {
		t.Errorf("of %d samples complete_until rose %d times, and the present was refuted %d times: this shows nothing", len(w.all), w.rises, refuted)
	}
}

// check returns what was missing of what is before a time.
func (s sample) check(times map[uint64][]int64, until time.Time, lie bool) error {
	for _, instance := range slices.Sorted(maps.Keys(s.known)) {
		all := times[instance]
		want := sort.Search(len(all), func(i int) bool { return all[i] >= until.UnixMilli() })
		if got := s.there[instance][lie]; got < int64(want) {
			return fmt.Errorf("%w: up to %v, %d of %d of the instance %d; the next was of %v", errLate, until, got, want, instance, time.UnixMilli(all[got]).UTC())
		}
	}
	return nil
}
