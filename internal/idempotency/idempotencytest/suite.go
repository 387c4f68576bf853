// Package idempotencytest proves stores of package idempotency:
//
//	idempotencytest.Run(t, idempotencytest.Harness{Open: open, Again: again})
package idempotencytest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/idempotency"
	"curt/internal/link"
)

// Harness is what a driver gives to the suite.
type Harness struct {
	// Open returns an empty store, closed by the test's clean-up.
	Open func(t testing.TB) idempotency.Store
	// Again returns a second handle on the data of s, as another process would have
	// it; nil = the driver is for a single process.
	Again func(t testing.TB, s idempotency.Store) idempotency.Store
}

// noon is the time of the suite's records; nothing here asks the clock.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// Sample returns a record; n tells records apart.
func Sample(n int, created time.Time) idempotency.Record {
	sum := sha256.Sum256(fmt.Append(nil, n))
	return idempotency.Record{
		Request: sum, ID: link.ID(sum[:16]), CodeKind: link.CodeKind(n % 2), Found: n%3 == 0,
		Link:    link.Key{Domain: []link.Domain{"", "b.example:81"}[n%2], Code: link.Code(fmt.Sprintf("code%d", n))},
		Created: created.UTC().Truncate(time.Millisecond),
	}
}

// Run proves a driver.
func Run(t *testing.T, h Harness) {
	t.Run("a claim stands for everybody", func(t *testing.T) { claims(t, h) })
	t.Run("one of many callers claims", func(t *testing.T) { oneClaim(t, h) })
	t.Run("an old record gives way", func(t *testing.T) { ages(t, h) })
	t.Run("changes compare and swap", func(t *testing.T) { changes(t, h) })
	t.Run("a release frees its own record", func(t *testing.T) { releases(t, h) })
	t.Run("old records are forgotten", func(t *testing.T) { forgets(t, h) })
	t.Run("a record of a batch names no link", func(t *testing.T) { batches(t, h) })
	t.Run("names have bounds", func(t *testing.T) { bounds(t, h) })
}

func handles(t testing.TB, h Harness) [2]idempotency.Store {
	s := h.Open(t)
	if h.Again == nil {
		return [2]idempotency.Store{s, s}
	}
	return [2]idempotency.Store{s, h.Again(t, s)}
}

func mustClaim(t testing.TB, s idempotency.Store, n idempotency.Name, r idempotency.Record) idempotency.Record {
	t.Helper()
	stands, err := s.Claim(t.Context(), n, r, noon.Add(-idempotency.Retention))
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	return stands
}

// stands fails unless the record is the one of the name; nil = there is none.
func stands(t testing.TB, s idempotency.Store, n idempotency.Name, want *idempotency.Record) {
	t.Helper()
	got, err := s.Find(t.Context(), n)
	if want == nil {
		if !errors.Is(err, link.ErrNotFound) {
			t.Errorf("find: %+v, %v, want %v", got, err, link.ErrNotFound)
		}
		return
	}
	if diff := cmp.Diff(*want, got); err != nil || diff != "" {
		t.Errorf("find: %v (-want +got):\n%s", err, diff)
	}
}

func claims(t *testing.T, h Harness) {
	s := handles(t, h)
	one, two := Sample(1, noon), Sample(2, noon.Add(time.Millisecond))
	n := idempotency.Name{Caller: "a", Key: "k"}
	stands(t, s[0], n, nil)
	if got := mustClaim(t, s[0], n, one); got != one {
		t.Errorf("the first claim: %+v", got)
	}
	if got := mustClaim(t, s[1], n, two); got != one {
		t.Errorf("the second claim: %+v", got)
	}
	if got := mustClaim(t, s[1], n, one); got != one { // a lost acknowledgement
		t.Errorf("the first claim again: %+v", got)
	}
	for _, other := range []idempotency.Name{{Caller: "A", Key: "k"}, {Caller: "a", Key: "K"}, {Caller: "ak", Key: "k"}, {Caller: "a", Key: " k"}} {
		if got := mustClaim(t, s[0], other, two); got != two {
			t.Errorf("%q met another's record", other)
		}
		stands(t, s[1], other, &two)
	}
	stands(t, s[1], n, &one)
}

func oneClaim(t *testing.T, h Harness) {
	s := handles(t, h)
	n := idempotency.Name{Caller: "a", Key: "k"}
	const callers = 200
	got := make([]idempotency.Record, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { got[i] = mustClaim(t, s[i%2], n, Sample(i, noon)) })
	}
	wg.Wait()
	for i := range got {
		if got[i] != got[0] {
			t.Fatalf("caller %d was told %s, the first %s", i, got[i].Link, got[0].Link)
		}
	}
	stands(t, s[1], n, &got[0])
}

func ages(t *testing.T, h Harness) {
	s := h.Open(t)
	n := idempotency.Name{Caller: "a", Key: "k"}
	exact, young := Sample(1, noon.Add(-idempotency.Retention)), Sample(2, noon)
	mustClaim(t, s, n, exact)
	if got := mustClaim(t, s, n, young); got != exact {
		t.Error("a record of exactly the age gave way")
	}
	if got, err := s.Claim(t.Context(), n, young, exact.Created.Add(time.Millisecond)); err != nil || got != young {
		t.Errorf("over an old record: %+v, %v", got, err)
	}
	stands(t, s, n, &young)
}

func changes(t *testing.T, h Harness) {
	s := h.Open(t)
	n := idempotency.Name{Caller: "a", Key: "k"}
	from, to, other := Sample(1, noon), Sample(1, noon), Sample(3, noon)
	to.Link.Code, to.CodeKind = "another", link.Counted
	mustClaim(t, s, n, from)
	for range 2 { // the second is a retry
		if err := s.Change(t.Context(), n, from, to); err != nil {
			t.Errorf("change: %v", err)
		}
		stands(t, s, n, &to)
	}
	if err := s.Change(t.Context(), n, from, other); !errors.Is(err, link.ErrConflict) {
		t.Errorf("change from what does not stand: %v", err)
	}
	if err := s.Change(t.Context(), idempotency.Name{Caller: "a", Key: "none"}, from, to); !errors.Is(err, link.ErrConflict) {
		t.Errorf("change of nothing: %v", err)
	}
	stands(t, s, n, &to)
}

func releases(t *testing.T, h Harness) {
	s := h.Open(t)
	n := idempotency.Name{Caller: "a", Key: "k"}
	one, two := Sample(1, noon), Sample(2, noon)
	mustClaim(t, s, n, one)
	for _, r := range []idempotency.Record{two, one, one} {
		if err := s.Release(t.Context(), n, r); err != nil {
			t.Errorf("release: %v", err)
		}
		if r == two {
			stands(t, s, n, &one)
		}
	}
	stands(t, s, n, nil)
	if got := mustClaim(t, s, n, two); got != two {
		t.Errorf("a claim of the freed name: %+v", got)
	}
}

func forgets(t *testing.T, h Harness) {
	s := h.Open(t)
	name := func(i int) idempotency.Name { return idempotency.Name{Caller: "a", Key: fmt.Sprint(i)} }
	for i := range 10 {
		mustClaim(t, s, name(i), Sample(i, noon.Add(time.Duration(i)*time.Millisecond)))
	}
	forget := func(limit, want int) {
		t.Helper()
		if n, err := s.Forget(t.Context(), noon.Add(5*time.Millisecond), limit); err != nil || n != want {
			t.Errorf("forgot %d, %v, want %d", n, err, want)
		}
	}
	forget(3, 3)
	stands(t, s, name(2), nil)
	kept := Sample(3, noon.Add(3*time.Millisecond))
	stands(t, s, name(3), &kept)
	forget(3, 2)
	forget(3, 0)
	kept = Sample(5, noon.Add(5*time.Millisecond))
	stands(t, s, name(4), nil)
	stands(t, s, name(5), &kept)
}

func batches(t *testing.T, h Harness) {
	s := handles(t, h)
	n, batch := idempotency.Name{Caller: "a", Key: "k"}, Sample(1, noon)
	batch.Link, batch.CodeKind, batch.Found = link.Key{}, link.Chosen, false
	for _, store := range s {
		if got := mustClaim(t, store, n, batch); got != batch {
			t.Errorf("claimed %+v, stands %+v", batch, got)
		}
	}
	stands(t, s[1], n, &batch)
	coded := batch
	coded.Codes = strings.Repeat(",1Ab3xYz9,", 500)
	if err := s[0].Change(t.Context(), n, batch, coded); err != nil {
		t.Errorf("codes of a batch: %v", err)
	}
	if err := s[1].Change(t.Context(), n, batch, coded); err != nil { // a retry
		t.Errorf("codes of a batch again: %v", err)
	}
	other := coded
	other.Codes = ",1another"
	if err := s[1].Change(t.Context(), n, batch, other); !errors.Is(err, link.ErrConflict) {
		t.Errorf("over codes that do not stand: %v", err)
	}
	stands(t, s[1], n, &coded)
}

func bounds(t *testing.T, h Harness) {
	s := h.Open(t)
	long := idempotency.Name{Caller: strings.Repeat("c", link.MaxName), Key: strings.Repeat("ü", idempotency.MaxKey/2)}
	r := Sample(1, noon)
	mustClaim(t, s, long, r)
	stands(t, s, long, &r)
	for _, n := range []idempotency.Name{
		{},
		{Caller: "a"},
		{Key: "k"},
		{Caller: "a", Key: strings.Repeat("k", idempotency.MaxKey+1)},
		{Caller: strings.Repeat("c", link.MaxName+1), Key: "k"},
	} {
		if _, err := s.Claim(t.Context(), n, r, noon); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("claim of %.20q: %v, want %v", n, err, link.ErrInvalid)
		}
	}
}
