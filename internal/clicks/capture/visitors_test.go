package capture_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/capture/capturetest"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/testkit"
)

// farKeys are keys of a store that is some way off, and may be away.
type farKeys struct {
	off time.Duration

	mu    sync.Mutex
	away  bool  // guarded by mu
	asked []int // days of the month; guarded by mu
}

func (f *farKeys) DayKey(ctx context.Context, day time.Time) (key [16]byte, err error) {
	f.mu.Lock()
	away := f.away
	f.asked = append(f.asked, day.Day())
	f.mu.Unlock()
	select {
	case <-time.After(f.off):
	case <-ctx.Done():
		return key, context.Cause(ctx)
	}
	if away {
		return key, errors.New("the store is away")
	}
	return capturetest.Keys{}.DayKey(ctx, day)
}

func (f *farKeys) set(away bool) { f.mu.Lock(); defer f.mu.Unlock(); f.away = away }

func (f *farKeys) days() []int { f.mu.Lock(); defer f.mu.Unlock(); return slices.Clone(f.asked) }

// toldApart records clicks of now, and returns what tells whether the last in the log has a
// visitor.
func toldApart(t *testing.T, ring *capture.Ring, log *clicklog.Log) func() bool {
	return func() bool {
		t.Helper()
		c := clicklogtest.UsualClick()
		c.Time = time.Now().UnixMilli()
		ring.Record(c)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		events := clicklogtest.ReadAll(t, log)
		return events[len(events)-1].Visitor != 0
	}
}

// A store that is away longer than clicks wait gives its key to those that come then.
func TestVisitorsAreToldApartWithAStoreFarAway(t *testing.T) {
	testkit.Unraced(t)
	for _, off := range []time.Duration{70 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			log, ring, keys := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{}), &farKeys{off: off}
			_, stop := startCapture(t, capture.Config{Ring: ring, Log: log, Keys: keys})
			told := toldApart(t, ring, log)
			_ = told() // it may come too early
			time.Sleep(off)
			if !told() {
				t.Errorf("%s away: no visitor", off)
			}
			if asked := keys.days(); len(asked) != 1 {
				t.Errorf("%s away: the store was asked %d times", off, len(asked))
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A start waits for the key, so that the first visitor is told apart.
func TestTheFirstVisitorIsToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, ring := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{})
		capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: &farKeys{off: time.Second}})
		capturer.Prepare(t.Context())
		ring.Record(usualNow())
		if err := capturer.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if capturer.Stats().Untagged != 0 {
			t.Error("the first click has no visitor")
		}
	})
}

func usualNow() *clicks.Raw {
	c := clicklogtest.UsualClick()
	c.Time = time.Now().UnixMilli()
	return c
}

// The next day's key is there before the day is, whatever the store does at midnight, and is
// asked for again when the day before is over for everybody.
func TestTheNextDaysKeyIsThereAtMidnight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24*time.Hour - 6*time.Minute) // the clock begins at midnight, the 1st
		log, ring, keys := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{}), &farKeys{off: time.Second}
		_, stop := startCapture(t, capture.Config{Ring: ring, Log: log, Keys: keys})
		told := toldApart(t, ring, log)
		time.Sleep(3 * time.Minute)
		keys.set(true)
		time.Sleep(3*time.Minute + time.Millisecond)
		if !told() {
			t.Error("no visitor right after midnight")
		}
		keys.set(false)
		time.Sleep(10 * time.Minute)
		if asked := keys.days(); !slices.Equal(asked, []int{1, 2, 2}) {
			t.Errorf("asked for the days %v", asked)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A key that was asked for right after midnight is asked for again when the day before is over
// for everybody: by other clocks it was not yet, and the store has kept the key of that day.
func TestAKeyOfJustAfterMidnightIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Minute) // the clock begins at midnight, the 1st
		log, ring, keys := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{}), &farKeys{}
		_, stop := startCapture(t, capture.Config{Ring: ring, Log: log, Keys: keys})
		for _, at := range []struct {
			after time.Duration // midnight
			want  []int
		}{
			{4*time.Minute + 59*time.Second, []int{1}},
			{5*time.Minute + time.Second, []int{1, 1}},
			{15 * time.Minute, []int{1, 1}},
		} {
			now := time.Now()
			time.Sleep(now.Truncate(24 * time.Hour).Add(at.after).Sub(now))
			synctest.Wait()
			if asked := keys.days(); !slices.Equal(asked, at.want) {
				t.Errorf("%v after midnight: asked for the days %v, want %v", at.after, asked, at.want)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// flipped are keys of which one byte is another.
type flipped struct{ at int }

func (f flipped) DayKey(ctx context.Context, day time.Time) ([16]byte, error) {
	key, err := capturetest.Keys{}.DayKey(ctx, day)
	if f.at >= 0 {
		key[f.at] ^= 1
	}
	return key, err
}

// Every byte of the day's key counts: half of a key could be guessed.
func TestATagNeedsTheWholeKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no click has to go on before the key is there
		tags := map[uint64]int{}
		for at := -1; at < 16; at++ {
			log, ring := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{})
			capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: flipped{at}})
			ring.Record(clicklogtest.UsualClick())
			if err := capturer.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			tag := clicklogtest.ReadAll(t, log)[0].Visitor
			if before, twice := tags[tag]; twice || tag == 0 {
				t.Errorf("with another byte %d the tag is %d, as with another byte %d", at, tag, before)
			}
			tags[tag] = at
		}
	})
}

// A click of the day before, drained while the key of today is being asked for, waits for that
// answer and then for its own.
func TestAClickOfYesterdayWaitsForItsOwnKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock begins at midnight
		log, ring := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{Bytes: 64 << 10, Shards: 1})
		c := clicklogtest.UsualClick()
		c.Time = time.Now().UnixMilli() - 1
		for range 120 { // more than half of the ring: they are drained at once
			ring.Record(c)
		}
		keys := &farKeys{off: 25 * time.Millisecond}
		capturer, stop := startCapture(t, capture.Config{Ring: ring, Log: log, Keys: keys})
		time.Sleep(40 * time.Millisecond)
		if asked := keys.days(); !slices.Equal(asked, []int{1, 31}) {
			t.Errorf("asked for the days %v, want today's and then yesterday's", asked)
		}
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := capturer.Stats(); n.Clicks != 120 || n.Untagged != 0 {
			t.Errorf("of %d clicks %d have no visitor", n.Clicks, n.Untagged)
		}
	})
}

// A store that is away is told of once, and when it is back.
func TestAMissingDayKeyIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		keys := &farKeys{off: time.Minute}
		log, ring := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{})
		_, stop := startCapture(t, capture.Config{Ring: ring, Log: log, Keys: keys, Logger: slog.New(slog.NewTextHandler(&text, nil))})
		told := toldApart(t, ring, log)
		for range 100 {
			_ = told()
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := strings.Count(text.String(), "no day key"); n != 1 {
			t.Errorf("%d lines:\n%s", n, text.String())
		}
	})
}
