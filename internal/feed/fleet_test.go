package feed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/feed"
	"curt/internal/feed/feedtest"
	"curt/internal/joblease"
	"curt/internal/joblease/jobleasetest"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

func filled(t *testing.T, n int) *feedtest.Memory {
	t.Helper()
	s := feedtest.NewMemory(1)
	for i := range n {
		if _, err := s.Create(t.Context(), linktest.Chosen(i, link.Code(fmt.Sprintf("code%d", i)))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func fleet(s *feedtest.Memory, leases joblease.Store, holder string, apply func(context.Context, []link.Event, uint64) error) *feed.Fleet[link.Position, link.Event] {
	return &feed.Fleet[link.Position, link.Event]{
		Name: "fleet", Page: 2, Positions: s, Apply: apply,
		Log:     feed.Log[link.Position, link.Event]{Read: s.Events, Head: s.Head},
		Rebuild: func(context.Context, uint64) error { return nil },
		Once:    joblease.Once{Store: leases, Holder: holder, Log: slog.New(slog.DiscardHandler)},
		Every:   time.Second, Logger: slog.New(slog.DiscardHandler),
	}
}

// A holder that was paused in Apply finds that its successor went on, keeps no position, and waits
// for the job again.
func TestAPausedHolderKeepsNoPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, leases := filled(t, 4), jobleasetest.NewMemory()
		if err := s.MoveFollower(t.Context(), "fleet", 0, ""); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		paused, goOn := make(chan struct{}), make(chan struct{})
		first := fleet(s, leases, "a", func(context.Context, []link.Event, uint64) error { // hears of no end of its lease
			close(paused)
			<-goOn
			return nil
		})
		var heard feedtest.Heard
		second := fleet(s, leases, "b", func(_ context.Context, page []link.Event, _ uint64) error { heard.Take(page); return nil })
		done := make(chan error, 2)
		go func() { done <- first.Run(ctx) }()
		<-paused
		if _, err := leases.Acquire(t.Context(), "fleet", "a", time.Millisecond); err != nil { // its lease ends
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
		go func() { done <- second.Run(ctx) }()
		time.Sleep(3 * joblease.TTL)
		close(goOn)
		time.Sleep(3 * joblease.TTL)
		if at, _, err := s.FollowerPosition(t.Context(), "fleet"); at != "4" || err != nil || heard.Err() != nil {
			t.Errorf("at %s, %v, %v", at, err, heard.Err())
		}
		end()
		for range 2 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// What fails is tried again, from where it was.
func TestAFleetFollowerTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := filled(t, 0)
		ctx, end := context.WithCancel(t.Context())
		var heard feedtest.Heard
		failures := 3
		f := fleet(s, jobleasetest.NewMemory(), "a", func(_ context.Context, page []link.Event, _ uint64) error {
			if failures--; failures >= 0 {
				return errors.New("the receiver is away")
			}
			heard.Take(page)
			return nil
		})
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()
		synctest.Wait() // it begins at the head of an empty log
		for i := range 5 {
			if _, err := s.Create(t.Context(), linktest.Chosen(i, link.Code(fmt.Sprintf("code%d", i)))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		if at, _, err := s.FollowerPosition(t.Context(), "fleet"); at != "5" || err != nil || heard.Err() != nil || failures >= 0 {
			t.Errorf("at %s, %v, %v, %d failures left", at, err, heard.Err(), failures)
		}
		end()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// The controls of the suite: what it must notice.
func TestTheSuiteNotices(t *testing.T) {
	entry := func(at link.Sequence, v link.Version) link.Event {
		return link.Event{Change: link.Change{Sequence: at, Key: link.Key{Code: "a"}, Version: v}}
	}
	for name, page := range map[string][]link.Event{
		"a number given before the commit": {entry(2, 1), entry(1, 2)},
		"a hole":                           {entry(1, 1), entry(3, 2)},
		"versions out of order":            {entry(1, 1), entry(2, 3), entry(3, 2)},
		"an entry twice":                   {entry(1, 1), entry(1, 1)},
	} {
		var heard feedtest.Heard
		if heard.Take(page); heard.Err() == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
	// A position that is kept before the effect loses entries when the follower is killed between
	// them.
	s, seen := filled(t, 4), 0
	for range 2 {
		at, _, err := s.FollowerPosition(t.Context(), "wrong")
		if err != nil {
			t.Fatal(err)
		}
		page, next, err := s.Events(t.Context(), at, 2)
		if err != nil || s.MoveFollower(t.Context(), "wrong", 1, next) != nil {
			t.Fatal(err)
		}
		if at != "" { // else it was killed
			seen += len(page)
		}
	}
	if seen != 2 {
		t.Errorf("%d entries", seen)
	}
}
