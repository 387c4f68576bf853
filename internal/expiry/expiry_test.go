package expiry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/background"
	"curt/internal/expiry"
	"curt/internal/expiry/expirytest"
	"curt/internal/feed/feedtest"
	"curt/internal/joblease"
	"curt/internal/joblease/jobleasetest"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

func TestOverAModel(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		expirytest.Run(t, expirytest.Harness{Open: func(testing.TB) expirytest.Store { return feedtest.NewMemory(partitions) }})
	}
}

// ended creates a link whose end is some time away.
func ended(t *testing.T, s link.Store, n int, code link.Code, kind link.CodeKind, in time.Duration) link.Key {
	t.Helper()
	l := linktest.Chosen(n, code)
	l.CodeKind, l.Expires = kind, time.Now().UTC().Add(in)
	if _, err := s.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return l.Key
}

// announced returns how often each code was announced.
func announced(t *testing.T, s link.EventLog) map[link.Code]int {
	t.Helper()
	times := map[link.Code]int{}
	for at := link.Position(""); ; {
		events, next, err := s.Events(t.Context(), at, 100)
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			for _, k := range events[i].Keys {
				times[k.Code]++
			}
		}
		if at = next; len(events) == 0 {
			return times
		}
	}
}

// sweep runs a sweeper, whose clock is ahead, for some time.
func sweep(t *testing.T, s expirytest.Store, ahead, during time.Duration) (lag time.Duration) {
	t.Helper()
	sweeper, stop := start(t, s, ahead, 0)
	time.Sleep(during)
	lag = sweeper.Lag()
	stop()
	return lag
}

// start runs a sweeper, whose clock is ahead, until stop.
func start(t *testing.T, s expirytest.Store, ahead, retention time.Duration) (sweeper *expiry.Sweeper, stop func()) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	sweeper = expiry.NewSweeper(expiry.Config{
		Retention: retention, Changed: func(link.Change) {},
		Links: s, Logs: s, Positions: s.BothFollowers(), Yielder: background.Inline{}, Log: quiet,
		Now:  func() time.Time { return time.Now().Add(ahead) },
		Once: joblease.Once{Store: jobleasetest.NewMemory(), Holder: "test", Log: quiet},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- sweeper.Run(ctx) }()
	return sweeper, func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// Where entries of the log are gone that were not read, all links are announced again: nobody knows
// which of them the entries were about.
func TestLostEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := feedtest.NewMemory(1)
		sweep(t, s, 0, time.Minute)
		ended(t, s, 1, "known", link.Chosen, -time.Hour)
		sweep(t, s, 0, time.Minute)
		ended(t, s, 2, "late", link.Chosen, -2*time.Hour)
		ended(t, s, 3, "counted", link.Counted, -2*time.Hour)
		s.Trim(0, 4) // of which the entry of late is one
		if lag := sweep(t, s, 0, time.Minute); lag > 5*time.Second {
			t.Errorf("the sweeper lags %s behind", lag)
		}
		s.Trim(0, 1)
		if times := announced(t, s); times["late"] != 1 || times["counted"] != 1 || times["known"] != 2 {
			t.Errorf("announced %v", times)
		}
	})
}

// A clock that was ahead makes nothing announced before its end by the clock of the next server, nor
// never.
func TestAClockThatWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := feedtest.NewMemory(1)
		sweep(t, s, time.Hour, time.Minute)
		ended(t, s, 1, "first", link.Chosen, 50*time.Minute)
		sweep(t, s, time.Hour, time.Minute)
		if times := announced(t, s); times["first"] != 1 {
			t.Fatalf("announced %v", times)
		}
		ended(t, s, 2, "behind", link.Counted, 20*time.Minute)
		ended(t, s, 3, "chosen", link.Chosen, 20*time.Minute)
		if lag := sweep(t, s, 0, 10*time.Minute); lag < 9*time.Minute {
			t.Errorf("it lags %s behind, and reads no logs", lag)
		}
		if times := announced(t, s); times["behind"] > 0 || times["chosen"] > 0 {
			t.Errorf("announced before the end: %v", times)
		}
		sweep(t, s, 0, 2*time.Hour)
		if times := announced(t, s); times["behind"] != 1 || times["chosen"] != 1 {
			t.Errorf("announced %v", times)
		}
	})
}

// Content is removed at a fixed rate, and the next of it within a minute of its time.
func TestTheRateOfRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := feedtest.NewMemory(1)
		for n := range 2*expiry.PurgeRate + 1 {
			ended(t, s, n, link.Code(fmt.Sprintf("code%03d", n)), link.Counted, -2*time.Hour)
		}
		next := ended(t, s, 900, "next", link.Counted, -time.Hour+30*time.Second)
		p, stop := start(t, s, 0, time.Hour)
		for turn := range 3 {
			synctest.Wait()
			if got, want := p.Removed(), uint64(min((turn+1)*2*expiry.PurgeRate, 2*expiry.PurgeRate+1)); got != want {
				t.Errorf("%d were removed after %d s, want %d", got, 2*turn, want)
			}
			time.Sleep(2 * time.Second)
		}
		time.Sleep(90 * time.Second)
		if l, err := s.Get(t.Context(), next); err != nil || !l.ContentRemoved() {
			t.Errorf("%+v, %v", l, err)
		}
		stop()
	})
}

// Reservations that lapsed are removed within a minute or so, others stay.
func TestLapsedReservationsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := feedtest.NewMemory(1)
		for code, hold := range map[link.Code]time.Duration{"soon": time.Minute, "later": 10 * time.Minute} {
			if _, _, err := s.Reserve(t.Context(), link.Claim{Key: link.Key{Code: code}, Workspace: "w", For: hold, Most: 2}); err != nil {
				t.Fatal(err)
			}
		}
		sweep(t, s, 0, 3*time.Minute)
		if n, err := s.RemoveLapsed(t.Context(), 10); err != nil || n != 0 {
			t.Errorf("%d were left, %v", n, err)
		}
		all, err := s.Occupants(t.Context(), []link.Key{{Code: "soon"}, {Code: "later"}})
		if err != nil || all[0].Held() || !all[1].Held() {
			t.Errorf("%+v, %v", all, err)
		}
		time.Sleep(10 * time.Minute) // the control: without a sweeper they stay
		if n, err := s.RemoveLapsed(t.Context(), 10); err != nil || n != 1 {
			t.Errorf("%d were left, %v", n, err)
		}
	})
}
