package analytics_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"curt/internal/analytics"
	"curt/internal/analytics/analyticstest"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/fold"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/rollup/rolluptest"
	"curt/internal/link"
)

type dayKeys struct{}

func (dayKeys) DayKey(_ context.Context, day time.Time) (key [16]byte, err error) {
	binary.LittleEndian.PutUint64(key[:], uint64(day.Unix()))
	return key, nil
}

// system is the embedded shape over a store.
type system struct {
	ring    *capture.Ring
	log     *clicklog.Log
	capture *capture.Capture
	fold    *fold.Fold
	*analytics.Embedded
}

func open(t *testing.T, store rollup.Store, every time.Duration) *system {
	t.Helper()
	log, err := clicklog.Open(clicklog.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := &system{ring: capture.NewRing(capture.RingConfig{Bytes: 4 << 20}), log: log}
	s.capture = capture.New(capture.Config{Ring: s.ring, Log: log, Keys: dayKeys{}, Geo: analyticstest.Places{}})
	s.fold = fold.New(fold.Config{Log: log, Store: store, Every: every})
	s.Embedded = analytics.NewEmbedded(store, s.fold)
	for _, run := range []func(context.Context) error{s.fold.Run, s.capture.Run} { // stopped in the other order
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	return s
}

// load records clicks and waits until they are counted.
func (s *system) load(t *testing.T, raws []clicks.Raw) {
	t.Helper()
	want := s.fold.Stats().Events + uint64(len(raws))
	for i := range raws {
		if !s.ring.Record(&raws[i]) {
			t.Fatal("the ring is full")
		}
	}
	s.await(t, "all events are counted", func() bool { return s.fold.Stats().Events >= want })
}

// tagged reports whether the visitors of all clicks that were loaded are known.
func (s *system) tagged(t *testing.T) bool {
	t.Helper()
	s.await(t, "all clicks are captured", func() bool { return s.capture.Stats().Clicks >= s.ring.Recorded() })
	return s.capture.Stats().Untagged == 0
}

// loader is what scripts ask, with its way in for clicks.
type loader interface {
	analytics.Reader

	load(t *testing.T, raws []clicks.Raw)
	tagged(t *testing.T) bool
}

// scripted is a loader in which every visitor is known. Clicks wait for the key of their day for 60 ms, and on a busy machine
// the goroutine that asks for it may run later: what was loaded is then loaded into a new one.
type scripted struct {
	loader

	open   func() loader
	loaded []clicks.Raw
}

func script(open func() loader) analyticstest.System {
	s := &scripted{loader: open(), open: open}
	return analyticstest.System{Reader: s, Load: s.load}
}

func (s *scripted) load(t *testing.T, raws []clicks.Raw) {
	t.Helper()
	s.loaded = append(s.loaded, raws...)
	s.loader.load(t, raws)
	for end := time.Now().Add(3 * time.Minute); !s.tagged(t); s.loader.load(t, s.loaded) {
		if time.Now().After(end) {
			t.Fatal("there were visitors without a key each time")
		}
		s.loader = s.open()
	}
}

// await returns once done does.
func (s *system) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !done() {
		select {
		case <-deadline.C:
			t.Fatalf("%s: not in a minute; %d events are counted", what, s.fold.Stats().Events)
		case <-poll.C:
		}
	}
}

func rollups(t *testing.T) *counts.Rollups {
	t.Helper()
	store, err := counts.Open(t.Context(), counts.Config{Path: filepath.Join(t.TempDir(), "clicks.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// The scripts run with everything in memory, everything written, and in between.
func TestScripts(t *testing.T) {
	for name, every := range map[string]time.Duration{"in memory": time.Hour, "written": time.Millisecond, "mixed": 200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			analyticstest.Run(t, "analyticstest/testdata", func(t *testing.T) analyticstest.System {
				return script(func() loader { return open(t, rollups(t), every) })
			})
		})
	}
	t.Run("without digests", func(t *testing.T) {
		analyticstest.Run(t, "analyticstest/testdata", func(t *testing.T) analyticstest.System {
			return script(func() loader { return open(t, new(rolluptest.Memory), 50*time.Millisecond) })
		})
	})
}

// A year of a busy link by days that begin at other times than UTC's: the clicks
// are all there, the visitors are too many; by days of UTC they are counted.
func TestVisitorsThatAreTooManyAreNotCounted(t *testing.T) {
	store := rollups(t)
	first := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	fillYear(t, store, first, 30, 1500)
	r := analytics.NewEmbedded(store, fold.New(fold.Config{}))
	zone, err := analytics.ParseZone("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	now := first.AddDate(0, 0, 30)
	for _, z := range []*time.Location{zone, time.UTC} {
		scope := analytics.Scope{Key: link.Key{Code: "hot"}, From: first, To: now, Zone: z}
		points, err := r.Series(t.Context(), scope, analytics.Day, now)
		if err != nil {
			t.Fatal(err)
		}
		var sum uint64
		for _, p := range points {
			sum += p.Clicks
			if p.Uncounted != (z == zone) || p.Uncounted == (p.Visitors > 0) {
				t.Errorf("%v: %+v", z, p)
			}
		}
		if sum != 30*96*1500 {
			t.Errorf("%v: %d clicks", z, sum)
		}
	}
}

// While batches are committed as fast as they can, every answer must be between
// what was counted before the question and what was recorded after it, and must
// never shrink.
func TestAnswersAreOneViewWhileBatchesAreWritten(t *testing.T) {
	for name, store := range map[string]rollup.Store{"memory": new(rolluptest.Memory), "sqlite": rollups(t)} {
		t.Run(name, func(t *testing.T) {
			s := open(t, store, time.Millisecond)
			now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
			k := link.Key{Code: "c1"}
			done := make(chan struct{})
			var readers sync.WaitGroup
			readers.Go(func() {
				last := uint64(0)
				for {
					select {
					case <-done:
						return
					default:
					}
					atLeast := s.fold.Stats().Events
					totals, err := s.Totals(t.Context(), analytics.Scope{Key: k}, now)
					if err != nil {
						t.Error(err)
						return
					}
					list, err := s.Clicks(t.Context(), []link.Key{k})
					if err != nil {
						t.Error(err)
						return
					}
					if totals.Clicks < max(last, atLeast) || list[0] < totals.Clicks || totals.Clicks24h > totals.Clicks {
						t.Errorf("%d clicks (%d in 24 h), then %d in the list; before: %d, counted %d",
							totals.Clicks, totals.Clicks24h, list[0], last, atLeast)
						return
					}
					last = list[0]
				}
			})
			const rounds, each = 15, 200
			for range rounds {
				raws := make([]clicks.Raw, each)
				for i := range raws {
					raws[i] = clicks.Raw{Time: now.UnixMilli() - 1000, Code: []byte("c1"), Outcome: clicks.Redirected}
				}
				s.load(t, raws)
			}
			close(done)
			readers.Wait()
			if list, err := s.Clicks(t.Context(), []link.Key{k}); err != nil || list[0] != rounds*each {
				t.Errorf("%v clicks in the end, %v; want %d", list, err, rounds*each)
			}
		})
	}
}

func TestPointsAreCompleteUntilTheWatermark(t *testing.T) {
	s := open(t, new(rolluptest.Memory), time.Hour)
	now := time.Now().UTC()
	s.load(t, []clicks.Raw{{Time: now.UnixMilli(), Code: []byte("c1"), Outcome: clicks.Redirected}})
	// The watermark passes the clicks after they are counted, when the log's end is reached.
	s.await(t, "a watermark", func() bool { return !s.fold.Freshness().Complete.IsZero() })
	scope := analytics.Scope{Key: link.Key{Code: "c1"}, From: now.Add(-time.Hour), To: now.Add(time.Hour)}
	points, err := s.Series(t.Context(), scope, analytics.Quarter, now)
	if err != nil {
		t.Fatal(err)
	}
	totals, err := s.Totals(t.Context(), scope, now)
	if err != nil {
		t.Fatal(err)
	}
	if totals.CompleteUntil.IsZero() || totals.CompleteUntil.After(time.Now()) || totals.LastUpdated.Before(totals.CompleteUntil) {
		t.Errorf("complete until %v, updated %v", totals.CompleteUntil, totals.LastUpdated)
	}
	if !points[0].Complete || points[len(points)-1].Complete {
		t.Errorf("an hour ago complete = %v, in an hour = %v", points[0].Complete, points[len(points)-1].Complete)
	}
}

func TestRangesThatCannotBeAnswered(t *testing.T) {
	s := open(t, new(rolluptest.Memory), time.Hour)
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		from, to time.Time
		step     analytics.Step
	}{
		"backwards":      {now, now.Add(-time.Hour), analytics.Hour},
		"minutes of old": {now.Add(-49 * time.Hour), now.Add(-48 * time.Hour), analytics.Minute},
		"too many":       {now.AddDate(-1, 0, 0), now, analytics.Quarter},
		"before time":    {time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), now, analytics.Day},
		"after time":     {now, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), analytics.Day},
	} {
		_, err := s.Series(t.Context(), analytics.Scope{From: test.from, To: test.to}, test.step, now)
		if !errors.Is(err, analytics.ErrRange) {
			t.Errorf("%s: %v, want ErrRange", name, err)
		}
	}
}

func TestAStoreThatIsAwayIsUnavailable(t *testing.T) {
	store := rollups(t)
	s := open(t, store, time.Hour)
	s.load(t, []clicks.Raw{{Time: 1, Code: []byte("c1"), Outcome: clicks.Redirected}})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	scope := analytics.Scope{Key: link.Key{Code: "c1"}}
	if _, err := s.Totals(t.Context(), scope, time.Now()); !errors.Is(err, analytics.ErrUnavailable) {
		t.Errorf("Totals: %v", err)
	}
	if _, err := s.Clicks(t.Context(), []link.Key{scope.Key}); !errors.Is(err, analytics.ErrUnavailable) {
		t.Errorf("Clicks: %v", err)
	}
}

func BenchmarkTotals(b *testing.B) {
	store, err := counts.Open(b.Context(), counts.Config{Path: filepath.Join(b.TempDir(), "clicks.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	fold := fold.New(fold.Config{})
	r := analytics.NewEmbedded(store, fold)
	keys := make([]link.Key, 50)
	for i := range keys {
		keys[i].Code = link.Code(fmt.Sprint("c", i))
	}
	for b.Loop() {
		if _, err := r.Clicks(b.Context(), keys); err != nil {
			b.Fatal(err)
		}
	}
}
