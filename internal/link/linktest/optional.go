package linktest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
)

// optional proves the interfaces that a driver may leave out.
func optional(t *testing.T, h Harness) {
	if h.Features.Spender {
		t.Run("spender: never over the bound", func(t *testing.T) { spends(t, h) })
		t.Run("spender: raised bounds and links without", func(t *testing.T) { spendCases(t, h) })
	}
	if h.Features.Deduper {
		t.Run("deduper: the oldest that stands in", func(t *testing.T) { dedupes(t, h) })
		t.Run("deduper: what must be equal", func(t *testing.T) { standsIn(t, h) })
		t.Run("deduper: one of many callers creates", func(t *testing.T) { findOrCreates(t, h) })
		t.Run("deduper: a repeated call answers for itself", func(t *testing.T) { dedupeAgain(t, h) })
	}
	if h.Features.Batcher {
		t.Run("batcher: a result for each", func(t *testing.T) { batches(t, h) })
		t.Run("batcher: entries see the earlier ones", func(t *testing.T) { batchDedupes(t, h) })
	}
	if h.Features.Reserver {
		t.Run("reserver", func(t *testing.T) { reservations(t, h) })
	}
	if h.Features.ManyGetter {
		t.Run("many getter: as Get of each", func(t *testing.T) { getsMany(t, h) })
	}
}

// getsMany asks for more links than one question may have.
func getsMany(t *testing.T, h Harness) {
	stores := handles(t, h)
	mine, theirs, gone := sample(1, "mine"), sample(2, "mine"), sample(3, "gone")
	theirs.Key.Domain, theirs.Workspace, theirs.Tags = "other.example", "theirs", []string{"a", "b"}
	theirs, mine = mustCreate(t, stores[0], theirs), mustCreate(t, stores[0], mine)
	gone = mustReplace(t, stores[0], mustCreate(t, stores[0], gone).Tombstone(epoch))
	want := []link.Link{theirs, {Key: link.Key{Code: "nobodys"}}, mine, gone, theirs, {Key: link.Key{Code: "with\x00nul"}}}
	for i := range link.MaxPage {
		want = append(want, link.Link{Key: link.Key{Code: link.Code(fmt.Sprintf("none%d", i))}})
	}
	keys := make([]link.Key, len(want))
	for i := range want {
		if keys[i] = want[i].Key; want[i].Version == 0 {
			want[i] = link.Link{}
		}
	}
	got, err := link.GetMany(t.Context(), stores[1], keys)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v, %s", err, d)
	}
	if got, err := stores[1].(link.ManyGetter).GetMany(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("of no link: %v, %v", got, err)
	}
}

// spends lets callers over two handles take from one link.
func spends(t *testing.T, h Harness) {
	stores := handles(t, h)
	l := sample(1, "abcd")
	l.MaxClicks = 100
	mustCreate(t, stores[0], l)
	var granted atomic.Uint64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 3 {
				got, err := stores[i%2].(link.Spender).Spend(t.Context(), l.Key, 3)
				if err != nil || got > 3 {
					t.Errorf("spend 3: %d, %v", got, err)
				}
				granted.Add(got)
			}
		})
	}
	wg.Wait()
	got := mustGet(t, stores[1], l.Key)
	if granted.Load() != 100 || got.Spent != 100 || got.Version != 1 {
		t.Errorf("granted %d, stored %d at version %d, want 100 at version 1", granted.Load(), got.Spent, got.Version)
	}
	target, err := settledLookup(t, h, stores[0], l.Key, func(g link.Target) bool { return g.Exhausted })
	if err != nil || target.At(epoch) != link.StateExhausted {
		t.Errorf("the target is %s, %v", target.At(epoch), err)
	}
}

func spendCases(t *testing.T, h Harness) {
	s := h.Open(t)
	spend := func(k link.Key, n, expected uint64) {
		t.Helper()
		if got, err := s.(link.Spender).Spend(t.Context(), k, n); err != nil || got != expected {
			t.Errorf("spend %d of %s: %d, %v, want %d", n, k, got, err, expected)
		}
	}
	free := mustCreate(t, s, sample(1, "free"))
	spend(free.Key, 7, 7)
	bound := sample(2, "bound")
	bound.MaxClicks = 5
	bound = mustCreate(t, s, bound)
	spend(bound.Key, 0, 0)
	spend(bound.Key, 3, 3)
	spend(bound.Key, 3, 2)
	spend(bound.Key, 1, 0)
	bound.MaxClicks = 6
	bound = mustReplace(t, s, bound)
	if bound.Spent != 5 {
		t.Errorf("a Replace left %d clicks spent, want 5", bound.Spent)
	}
	spend(bound.Key, 9, 1)
	bound.MaxClicks = 2 // below what was spent
	bound = mustReplace(t, s, bound)
	spend(bound.Key, 1, 0)
	_, err := s.(link.Spender).Spend(t.Context(), link.Key{Code: "none"}, 1)
	want(t, "spend of nothing", err, link.ErrNotFound)
	mustReplace(t, s, bound.Tombstone(epoch))
	_, err = s.(link.Spender).Spend(t.Context(), bound.Key, 1)
	want(t, "spend of a tombstone", err, link.ErrNotFound)
}
