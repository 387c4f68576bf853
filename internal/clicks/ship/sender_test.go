package ship_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/ship"
)

// promisedSink takes everything, and keeps what it was promised last.
type promisedSink struct {
	mu      sync.Mutex
	last    int64 // guarded by mu
	highest int64 // guarded by mu: but for the end
}

func (*promisedSink) Send(_ context.Context, _ *clicklog.Block, done func(error)) error {
	done(nil)
	return nil
}

func (s *promisedSink) SendWatermark(_ context.Context, _ uint64, watermark int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last = watermark; watermark != clicks.Ended {
		s.highest = max(s.highest, watermark)
	}
	return nil
}

func (s *promisedSink) said() (last, highest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.UnixMilli(s.last), time.UnixMilli(s.highest)
}

// shipMarks runs a shipper beside whoever sets marks.
func shipMarks(t *testing.T, log *clicklog.Log, began time.Time, f func(*promisedSink, *ship.Shipper)) {
	t.Helper()
	sink := &promisedSink{}
	s := ship.New(ship.Config{Log: log, Sink: sink, State: filepath.Join(t.TempDir(), "shipped"), Instance: 7, Began: began})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	f(sink, s)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A clock that was 40 days ahead and came back: what it promised is told no more, and from the
// next drain on promises are as before.
func TestAPromiseOfAClockThatCameBackIsDropped(t *testing.T) {
	for name, begins := range map[string]time.Duration{"ahead": 40 * 24 * time.Hour, "right": -time.Second} {
		synctest.Test(t, func(t *testing.T) {
			log, began := clicklogtest.Open(t, clicklog.Config{}), time.Now().Add(begins)
			first := began
			if begins > 0 {
				first = time.UnixMilli(0)
			}
			shipMarks(t, log, began, func(sink *promisedSink, s *ship.Shipper) {
				tell := func(what string, mark, want time.Time) {
					t.Helper()
					if !mark.IsZero() {
						log.SetMark(mark.UTC())
					}
					time.Sleep(2 * time.Second)
					synctest.Wait()
					if last, highest := sink.said(); last.UnixMilli() != want.UnixMilli() || s.Stats().Promised.UnixMilli() != want.UnixMilli() || highest.After(time.Now()) {
						t.Errorf("%s, %s: it promises %v (%v), and %v at the most; want %v", name, what, last, s.Stats().Promised, highest, want)
					}
				}
				tell("at first", time.Time{}, first)
				now := time.Now()
				tell("a drain", now, now)
				tell("a drain by a clock that is ahead", now.Add(40*24*time.Hour), now)
				now = time.Now()
				tell("a drain after it", now, now)
			})
		})
	}
}

// What a log holds is as old as the first block that is not sent yet says, which may be older
// than its first click.
func TestUnsentClicksAreAsOldAsTheirFirstBlock(t *testing.T) {
	state := filepath.Join(t.TempDir(), "shipped")
	log := clicklogtest.Open(t, clicklog.Config{})
	if at, err := ship.Unsent(log, state); err != nil || !at.IsZero() {
		t.Errorf("of an empty log: %v, %v", at, err)
	}
	click := time.UnixMilli(clicklogtest.UsualClick().Time)
	for i, marked := range []time.Duration{-time.Second, time.Second, -time.Hour} {
		at := clicklog.Position{}
		if i > 0 {
			at = log.End()
		}
		if _, err := log.Append(clicklogtest.SealMarked(7, uint64(i), clicklogtest.UsualClick(), click.Add(marked)), time.Now()); err != nil {
			t.Fatal(err)
		}
		sent(t, state, at)
		if got, err := ship.Unsent(log, state); err != nil || !got.Equal(click.Add(min(0, marked))) {
			t.Errorf("of one click: %v, %v; want %v", got, err, click.Add(min(0, marked)))
		}
	}
	sent(t, state, log.End())
	if at, err := ship.Unsent(log, state); err != nil || !at.IsZero() {
		t.Errorf("all of it was sent: %v, %v", at, err)
	}
	if err := os.WriteFile(state, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if at, err := ship.Unsent(log, state); err == nil {
		t.Errorf("nobody knows what was sent: %v", at)
	}
}

// sent writes down that all before a position was sent.
func sent(t *testing.T, state string, before clicklog.Position) {
	t.Helper()
	b, err := json.Marshal(map[string]clicklog.Position{"position": before})
	if err == nil {
		err = os.WriteFile(state, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
