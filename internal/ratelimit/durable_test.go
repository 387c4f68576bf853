package ratelimit_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/ratelimit"
	"curt/internal/ratelimit/ratelimittest"
)

var durableKey = ratelimit.NewHashKey([]byte("sixteen bytes...and more"))

// server opens a Durable and returns what stops it, with or without its last exchange.
func server(t *testing.T, l ratelimit.Ledger, fleet bool) (d *ratelimit.Durable, stop func()) {
	t.Helper()
	d = ratelimit.OpenDurable(t.Context(), ratelimit.DurableConfig{Key: durableKey, Ledger: l, Shared: fleet, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) }) // it has no error
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return d, stop
}

func TestDurableKeepsTheContract(t *testing.T) {
	ratelimittest.Run(t, func(t *testing.T) ratelimit.Store {
		return ratelimit.OpenDurable(t.Context(), ratelimit.DurableConfig{Key: durableKey, Ledger: newLevels(), Log: slog.New(slog.DiscardHandler)})
	})
}

// levels is a shared that returns all levels, as tables do.
type levels struct{ *shared }

func newLevels() levels { return levels{newShared()} }

func (l levels) Add(ctx context.Context, spent []ratelimit.Spent) ([]ratelimit.Level, error) {
	if _, err := l.shared.Add(ctx, spent); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []ratelimit.Level
	for bucket, full := range l.full {
		all = append(all, ratelimit.Level{Bucket: bucket, Full: time.Until(full)})
	}
	return all, nil
}

func plan(n int) []ratelimit.Charge {
	return []ratelimit.Charge{{Bucket: "create:w:acme/24h", Limit: ratelimit.Per(100, 24*time.Hour), Cost: n}}
}

func allowed(t *testing.T, s ratelimit.Store, n int) bool {
	t.Helper()
	v, err := s.Spend(t.Context(), time.Now(), plan(n))
	if err != nil {
		t.Fatal(err)
	}
	return v[0].Allowed
}

func TestAPlanIsNotTwiceItselfAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLevels()
		before, stop := server(t, l, false)
		if !allowed(t, before, 80) {
			t.Fatal("80 of 100 are refused")
		}
		stop()
		after, _ := server(t, l, false)
		if allowed(t, after, 21) || !allowed(t, after, 20) || allowed(t, after, 1) {
			t.Error("the plan is not what was left of it")
		}
	})
}

func TestServersLearnOfEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLevels()
		one, _ := server(t, l, true)
		two, _ := server(t, l, true)
		if !allowed(t, one, 80) {
			t.Fatal("80 of 100 are refused")
		}
		until(t, "the other server knows", func() bool {
			v, err := ratelimit.Peek(t.Context(), two, time.Now(), plan(21))
			return err == nil && !v[0].Allowed
		})
		if !allowed(t, two, 20) {
			t.Error("the rest is refused")
		}
		until(t, "the first knows", func() bool {
			v, err := ratelimit.Peek(t.Context(), one, time.Now(), plan(1))
			return err == nil && !v[0].Allowed
		})
	})
}

func TestChargesWaitForALedgerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLevels()
		one, stop := server(t, l, false)
		l.away.Store(true)
		if !allowed(t, one, 60) {
			t.Fatal("60 of 100 are refused")
		}
		calls := l.adds.Load()
		until(t, "an exchange failed", func() bool { return l.adds.Load() > calls })
		if allowed(t, one, 41) || !allowed(t, one, 20) {
			t.Error("the limit of this server does not hold")
		}
		l.away.Store(false)
		stop()
		after, _ := server(t, l, false)
		if allowed(t, after, 21) || !allowed(t, after, 20) {
			t.Error("what was charged meanwhile is lost, or counts twice")
		}
	})
}
