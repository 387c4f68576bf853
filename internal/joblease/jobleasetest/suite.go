// Package jobleasetest proves stores of package joblease.
package jobleasetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/joblease"
	"curt/internal/link"
)

// long outlasts the test, and soon does not.
const (
	long = time.Hour
	soon = time.Millisecond
)

// Run proves a store: open returns an empty one, and a second handle on its data, as another
// process would have it. The clocks of holders are not in the contract: whatever a caller's clock
// says, nothing here depends on it.
func Run(t *testing.T, open func(t testing.TB) [2]joblease.Store) {
	t.Run("one of many has the job", func(t *testing.T) { one(t, open(t)) })
	t.Run("a paused holder has lost the job", func(t *testing.T) { paused(t, open(t)) })
	t.Run("a renewed lease lasts", func(t *testing.T) { renewed(t, open(t)) })
	t.Run("a released job is free", func(t *testing.T) { released(t, open(t)) })
	t.Run("a holder acquires again", func(t *testing.T) { again(t, open(t)) })
	t.Run("names have bounds", func(t *testing.T) { bounds(t, open(t)[0]) })
}

func acquire(t testing.TB, s joblease.Store, holder string, ttl time.Duration) joblease.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), "job", holder, ttl)
	if err != nil {
		t.Fatalf("%s acquires: %v", holder, err)
	}
	return l
}

func isHeld(t testing.TB, s joblease.Store, holder string) {
	t.Helper()
	if l, err := s.Acquire(t.Context(), "job", holder, long); !errors.Is(err, joblease.ErrHeld) {
		t.Errorf("%s acquires: %+v, %v, want %v", holder, l, err, joblease.ErrHeld)
	}
}

// eventually acquires a job whose lease is about to run out.
func eventually(t testing.TB, s joblease.Store, holder string) joblease.Lease {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		l, err := s.Acquire(t.Context(), "job", holder, long)
		if err == nil {
			return l
		}
		if !errors.Is(err, joblease.ErrHeld) {
			t.Fatal(err)
		}
	}
	t.Fatal("a lease does not run out")
	return joblease.Lease{}
}

func one(t *testing.T, s [2]joblease.Store) {
	const callers = 40
	won := make([]joblease.Lease, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			l, err := s[i%2].Acquire(t.Context(), "job", fmt.Sprint("server ", i), long)
			switch {
			case err == nil:
				won[i] = l
			case !errors.Is(err, joblease.ErrHeld):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	winners := 0
	for i, l := range won {
		if l == (joblease.Lease{}) {
			continue
		}
		winners++
		if want := (joblease.Lease{Name: "job", Holder: fmt.Sprint("server ", i), Fence: 1}); l != want {
			t.Errorf("%+v, want %+v", l, want)
		}
	}
	if winners != 1 {
		t.Errorf("%d servers have the job", winners)
	}
	if l, err := s[1].Acquire(t.Context(), "another job", "x", long); err != nil || l.Fence != 1 {
		t.Errorf("another job: %+v, %v", l, err)
	}
}

func paused(t *testing.T, s [2]joblease.Store) {
	first := acquire(t, s[0], "a", soon)
	second := eventually(t, s[1], "b")
	if second.Fence <= first.Fence {
		t.Errorf("fence %d behind %d", second.Fence, first.Fence)
	}
	if err := s[0].Renew(t.Context(), first, long); !errors.Is(err, joblease.ErrLost) {
		t.Errorf("renew a lost lease: %v", err)
	}
	if err := s[0].Release(t.Context(), first); err != nil {
		t.Errorf("release a lost lease: %v", err)
	}
	isHeld(t, s[0], "a")
	if err := s[1].Renew(t.Context(), second, long); err != nil {
		t.Errorf("renew: %v", err)
	}
}

func renewed(t *testing.T, s [2]joblease.Store) {
	l := acquire(t, s[0], "a", soon)
	if err := s[0].Renew(t.Context(), l, long); err != nil { // perhaps after it ran out: nobody has the job
		t.Fatal(err)
	}
	isHeld(t, s[1], "b")
}

func released(t *testing.T, s [2]joblease.Store) {
	l := acquire(t, s[0], "a", long)
	for range 2 {
		if err := s[0].Release(t.Context(), l); err != nil {
			t.Error(err)
		}
	}
	if err := s[0].Renew(t.Context(), l, long); !errors.Is(err, joblease.ErrLost) {
		t.Errorf("renew a released lease: %v", err)
	}
	if next := acquire(t, s[1], "b", long); next.Fence <= l.Fence {
		t.Errorf("fence %d behind %d", next.Fence, l.Fence)
	}
}

func again(t *testing.T, s [2]joblease.Store) {
	first := acquire(t, s[0], "a", long)
	second := acquire(t, s[1], "a", long) // it was killed, and has started again
	if second.Fence <= first.Fence {
		t.Errorf("fence %d behind %d", second.Fence, first.Fence)
	}
	if err := s[0].Renew(t.Context(), first, long); !errors.Is(err, joblease.ErrLost) {
		t.Errorf("renew under the older fence: %v", err)
	}
}

func bounds(t *testing.T, s joblease.Store) {
	fits := strings.Repeat("n", joblease.MaxName)
	for _, tt := range []struct {
		name, holder string
		ttl          time.Duration
	}{{"", "a", long}, {"job", "", long}, {fits + "n", "a", long}, {"job", fits + "n", long}, {"job", "a", 0}, {"job", "a", -long}} {
		if _, err := s.Acquire(t.Context(), tt.name, tt.holder, tt.ttl); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("%.9q, %.9q, %s: %v", tt.name, tt.holder, tt.ttl, err)
		}
	}
	if _, err := s.Acquire(t.Context(), fits, fits, long); err != nil {
		t.Error(err)
	}
}
