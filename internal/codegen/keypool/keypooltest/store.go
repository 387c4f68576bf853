package keypooltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"curt/internal/codegen/keypool"
	"curt/internal/link"
)

// pool is the name of the pool of most cases.
const pool = "codes-7"

// Run proves a driver. open returns a store without pools; again returns another handle on the data of s, as a second
// process would have it, while s stays usable.
func Run(t *testing.T, open func(t *testing.T) keypool.Store, again func(t *testing.T, s keypool.Store) keypool.Store) {
	t.Run("a batch is taken once, in the order of puts", func(t *testing.T) { s := open(t); inOrder(t, s, again(t, s)) })
	t.Run("pools do not touch each other", func(t *testing.T) { apart(t, open(t)) })
	t.Run("many takers share the batches", func(t *testing.T) { s := open(t); manyTakers(t, s, again(t, s)) })
	t.Run("the rest of a batch is put back once", func(t *testing.T) { s := open(t); putBack(t, s, again(t, s)) })
	t.Run("what a holder lost is leaked", func(t *testing.T) { s := open(t); abandons(t, s, again(t, s)) })
	t.Run("holders that fell silent have lost their keys", func(t *testing.T) { s := open(t); silent(t, s, again(t, s)) })
	t.Run("the rate is that of takes", func(t *testing.T) { rates(t, open(t)) })
	t.Run("batches have bounds", func(t *testing.T) { bounds(t, open(t)) })
	t.Run("a cancelled caller gets an error", func(t *testing.T) { cancelled(t, open(t)) })
}

// keysFrom returns n keys that no other number has.
func keysFrom(first, n int) []link.Code {
	keys := make([]link.Code, n)
	for i := range keys {
		keys[i] = link.Code(fmt.Sprintf("k%06d", first+i))
	}
	return keys
}

func mustPut(t *testing.T, s keypool.Store, pool string, keys []link.Code) {
	t.Helper()
	if err := s.Put(t.Context(), pool, keys); err != nil {
		t.Fatalf("Put(%s, %d keys): %v", pool, len(keys), err)
	}
}

func mustTake(t *testing.T, s keypool.Store, pool, holder string) keypool.Batch {
	t.Helper()
	b, err := s.Take(t.Context(), pool, holder)
	if err != nil {
		t.Fatalf("Take(%s, %s): %v", pool, holder, err)
	}
	if b.Holder != holder {
		t.Errorf("Take(%s, %s) returned a batch of %q", pool, holder, b.Holder)
	}
	return b
}

func wantLevel(t *testing.T, s keypool.Store, pool string, unused, held, leaked uint64) {
	t.Helper()
	l, err := s.Level(t.Context(), pool)
	if err != nil {
		t.Fatalf("Level(%s): %v", pool, err)
	}
	if l.Unused != unused || l.Held != held || l.Leaked != leaked {
		t.Errorf("level of %s is %+v, want %d unused, %d held, %d leaked", pool, l, unused, held, leaked)
	}
}

func wantEmpty(t *testing.T, s keypool.Store, pool string) {
	t.Helper()
	if b, err := s.Take(t.Context(), pool, "a"); !errors.Is(err, keypool.ErrEmpty) {
		t.Errorf("Take of an empty pool: %+v, %v; want ErrEmpty", b, err)
	}
}

func inOrder(t *testing.T, s, other keypool.Store) {
	wantEmpty(t, s, pool)
	wantLevel(t, s, pool, 0, 0, 0)
	for i := range 3 {
		mustPut(t, s, pool, keysFrom(i*100, 100))
	}
	ids := map[uint64]bool{}
	for i, from := range []keypool.Store{s, other, s} {
		b := mustTake(t, from, pool, fmt.Sprint("server", i))
		if !slices.Equal(b.Keys, keysFrom(i*100, 100)) || ids[b.ID] {
			t.Errorf("batch %d is %d: %d keys from %s", i, b.ID, len(b.Keys), b.Keys[0])
		}
		ids[b.ID] = true
		wantLevel(t, other, pool, uint64(200-100*i), uint64(100*i+100), 0)
	}
	wantEmpty(t, other, pool)
}

func apart(t *testing.T, s keypool.Store) {
	mustPut(t, s, "codes-4", keysFrom(0, 5))
	mustPut(t, s, pool, keysFrom(10, 7))
	wantEmpty(t, s, "codes-5")
	if b := mustTake(t, s, pool, "a"); !slices.Equal(b.Keys, keysFrom(10, 7)) {
		t.Errorf("took %v", b.Keys)
	}
	wantLevel(t, s, "codes-4", 5, 0, 0)
	wantLevel(t, s, pool, 0, 7, 0)
}

func manyTakers(t *testing.T, handles ...keypool.Store) {
	const batches, takers = 60, 4
	for i := range batches {
		mustPut(t, handles[i%len(handles)], pool, keysFrom(i*10, 10))
	}
	var (
		mu   sync.Mutex
		seen = map[link.Code]bool{}
		wg   sync.WaitGroup
	)
	for i := range takers {
		for j, s := range handles {
			wg.Go(func() {
				for {
					b, err := s.Take(t.Context(), pool, fmt.Sprintf("server%d-%d", i, j))
					if errors.Is(err, keypool.ErrEmpty) {
						return
					}
					if err != nil {
						t.Errorf("Take: %v", err)
						return
					}
					mu.Lock()
					for _, k := range b.Keys {
						if seen[k] {
							t.Errorf("key %s was taken twice", k)
						}
						seen[k] = true
					}
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	if len(seen) != batches*10 {
		t.Errorf("took %d keys of %d", len(seen), batches*10)
	}
	wantLevel(t, handles[0], pool, 0, batches*10, 0)
}

func putBack(t *testing.T, s, other keypool.Store) {
	for i := range 3 {
		mustPut(t, s, pool, keysFrom(i*10, 10))
	}
	first, second := mustTake(t, s, pool, "a"), mustTake(t, s, pool, "a")
	release := func(s keypool.Store, b keypool.Batch, rest []link.Code, leaked int) error {
		return s.Release(t.Context(), b, rest, leaked)
	}
	if err := release(s, first, first.Keys[4:], 0); err != nil {
		t.Fatalf("Release: %v", err)
	}
	wantLevel(t, other, pool, 16, 10, 0)
	stranger := second
	stranger.Holder = "b"
	for name, again := range map[string]func() error{
		"the same":         func() error { return release(s, first, first.Keys[4:], 0) },
		"elsewhere":        func() error { return release(other, first, nil, 0) },
		"of another":       func() error { return release(s, stranger, nil, 0) },
		"that never was":   func() error { return release(s, keypool.Batch{ID: 999_999, Holder: "a"}, first.Keys[4:], 0) },
		"leaked afterward": func() error { return release(s, first, nil, 6) },
	} {
		if err := again(); !errors.Is(err, link.ErrNotFound) {
			t.Errorf("Release of a batch that is not held, %s: %v; want ErrNotFound", name, err)
		}
	}
	if err := release(other, second, nil, 3); err != nil {
		t.Errorf("Release: %v", err)
	}
	wantLevel(t, s, pool, 16, 0, 3)
	third, rest := mustTake(t, s, pool, "a"), mustTake(t, other, pool, "b")
	if !slices.Equal(third.Keys, keysFrom(20, 10)) || !slices.Equal(rest.Keys, keysFrom(4, 6)) {
		t.Errorf("took %v, then %v", third.Keys, rest.Keys)
	}
	if rest.ID == first.ID || rest.ID == third.ID {
		t.Errorf("batch %d has the number of another", rest.ID)
	}
	wantEmpty(t, s, pool)
}

func abandons(t *testing.T, s, other keypool.Store) {
	for i := range 4 {
		mustPut(t, s, pool, keysFrom(i*10, 10))
	}
	used := mustTake(t, s, pool, "a")
	if err := s.Release(t.Context(), used, nil, 0); err != nil {
		t.Fatal(err)
	}
	lost := mustTake(t, s, pool, "a")
	mustTake(t, s, pool, "a")
	mustTake(t, s, pool, "b")
	for i, want := range []uint64{20, 0} {
		if leaked, err := other.Abandon(t.Context(), "a"); err != nil || leaked != want {
			t.Errorf("Abandon %d: %d, %v; want %d", i, leaked, err, want)
		}
		wantLevel(t, s, pool, 0, 10, 20)
	}
	if err := s.Release(t.Context(), lost, lost.Keys, 0); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("Release of what was lost: %v; want ErrNotFound", err)
	}
	wantEmpty(t, s, pool)
}

func silent(t *testing.T, s, other keypool.Store) {
	mustPut(t, s, pool, keysFrom(0, 10))
	mustPut(t, s, pool, keysFrom(10, 10))
	mustTake(t, s, pool, "quiet")
	mustTake(t, other, pool, "alive")
	if leaked, err := other.Renew(t.Context(), "alive", time.Hour); err != nil || leaked != 0 {
		t.Errorf("Renew after a moment: %d, %v", leaked, err)
	}
	// Time passes by the store's clock alone: the silence that is allowed becomes shorter instead.
	deadline := time.Now().Add(3 * time.Minute)
	for {
		leaked, err := other.Renew(t.Context(), "alive", time.Millisecond)
		if err != nil || leaked != 0 && leaked != 10 || time.Now().After(deadline) {
			t.Fatalf("Renew: %d, %v", leaked, err)
		}
		if leaked == 10 {
			break
		}
	}
	wantLevel(t, s, pool, 0, 10, 10)
}

func rates(t *testing.T, s keypool.Store) {
	for i := range 3 {
		mustPut(t, s, pool, keysFrom(i*10, 10))
	}
	a := mustTake(t, s, pool, "a")
	mustTake(t, s, pool, "b")
	l, err := s.Level(t.Context(), pool)
	if err != nil || l.Taken != 20 {
		t.Errorf("level %+v, %v; want 20 taken", l, err)
	}
	if runway, ok := l.Runway(); !ok || runway != keypool.RateWindow/2 {
		t.Errorf("10 keys last %v, %v; want half of a minute", runway, ok)
	}
	if err := s.Release(t.Context(), a, a.Keys[2:], 0); err != nil {
		t.Fatal(err)
	}
	if l, err = s.Level(t.Context(), pool); err != nil || l.Taken != 12 {
		t.Errorf("level %+v, %v; want 12 taken, without those that were put back", l, err)
	}
}

func bounds(t *testing.T, s keypool.Store) {
	for _, n := range []int{0, keypool.BatchSize + 1} {
		if err := s.Put(t.Context(), pool, keysFrom(0, n)); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("Put of %d keys: %v; want ErrInvalid", n, err)
		}
	}
	long := keysFrom(0, keypool.BatchSize)
	for i := range long {
		long[i] += "aaaa"
	}
	mustPut(t, s, "snowflake", long)
	if b := mustTake(t, s, "snowflake", "a"); !slices.Equal(b.Keys, long) {
		t.Errorf("a full batch came back as %d keys", len(b.Keys))
	}
}

func cancelled(t *testing.T, s keypool.Store) {
	mustPut(t, s, pool, keysFrom(0, 10))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Take(ctx, pool, "a"); !errors.Is(err, context.Canceled) && !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("Take of a cancelled caller: %v; want context.Canceled or ErrUnavailable", err)
	}
}
