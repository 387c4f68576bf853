package rolluptest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// several proves that writers of one database count together and go on by themselves.
func (h Harness) several(t *testing.T) {
	t.Run("what all counted is one sum", h.together)
	t.Run("each has a place of its own", h.apart)
}

// together lets three writers count the same links at the same time, in chunks that begin
// elsewhere for each, and every batch twice, as after a lost answer.
func (h Harness) together(t *testing.T) {
	stores := []rollup.Store{h.Open(t)}
	for len(stores) < 3 {
		stores = append(stores, h.Other(t, stores[0]))
	}
	const batches, links = 12, 30
	var keys []link.Key
	for i := range links {
		keys = append(keys, key(i))
	}
	made := make([][]rollup.Batch, len(stores))
	for w := range stores {
		r := rand.New(rand.NewPCG(21, uint64(w)))
		for generation := range uint64(batches) {
			var deltas []rollup.LinkDelta
			for i := range links {
				if r.IntN(4) > 0 {
					deltas = append(deltas, delta(i, someQuarter+uint32(r.IntN(3)), 1+r.Uint64N(5), r))
				}
			}
			made[w] = append(made[w], batch(generation+1, 3+4*w, deltas...))
		}
	}
	var writers sync.WaitGroup
	for w, s := range stores {
		writers.Go(func() {
			for _, b := range made[w] {
				for range 2 {
					if err := applied(t, s, b); err != nil {
						t.Errorf("writer %d, batch %d: %v", w, b.Generation, err)
						return
					}
				}
			}
		})
	}
	writers.Wait()
	model := new(Memory)
	generation := uint64(0)
	for _, b := range slices.Concat(made...) {
		generation++
		b.Generation = generation
		apply(t, model, b)
	}
	for w, s := range stores {
		if state, err := s.Load(t.Context()); err != nil || state != made[w][batches-1].State {
			t.Errorf("writer %d: Load = %+v, %v", w, state, err)
		}
		same(t, renumbered{s, generation}, model, keys)
	}
}

// applied applies a batch as Fold does, which tries again what met another writer's.
func applied(t *testing.T, s rollup.Store, b rollup.Batch) (err error) {
	for range 20 {
		if err = s.Apply(t.Context(), b); err == nil || errors.Is(err, rollup.ErrGeneration) {
			return err
		}
	}
	return err
}

// renumbered answers with the generation of the model, where all that writers did to a
// store is done by one.
type renumbered struct {
	rollup.Store

	generation uint64
}

func (r renumbered) Totals(ctx context.Context, keys []link.Key) ([]rollup.Total, uint64, error) {
	totals, _, err := r.Store.Totals(ctx, keys)
	return totals, r.generation, err
}

func (r renumbered) Read(ctx context.Context, k link.Key, want rollup.Want, spans ...rollup.Span) (rollup.Stored, error) {
	found, err := r.Store.Read(ctx, k, want, spans...)
	found.Generation = r.generation
	return found, err
}

// apart counts with one writer, and finds the other where it was.
func (h Harness) apart(t *testing.T) {
	first := h.Open(t)
	second := h.Other(t, first)
	r := rand.New(rand.NewPCG(23, 24))
	for generation := range uint64(3) {
		apply(t, first, batch(generation+1, 10, delta(1, someQuarter, 5, r)))
	}
	if state, err := second.Load(t.Context()); err != nil || state != (rollup.State{}) {
		t.Errorf("the other's place is %+v, %v", state, err)
	}
	totals, generation, err := second.Totals(t.Context(), []link.Key{key(1)})
	if err != nil || generation != 0 || totals[0].Clicks != 15 {
		t.Errorf("the other reads %d clicks of generation %d, %v; want 15 of 0", totals[0].Clicks, generation, err)
	}
	if err := second.Apply(t.Context(), batch(4, 10)); !errors.Is(err, rollup.ErrGeneration) {
		t.Errorf("the other's fourth batch is its first: %v", err)
	}
	apply(t, second, batch(1, 10, delta(1, someQuarter, 5, r)))
	again := h.Again(t, second)
	if state, err := again.Load(t.Context()); err != nil || state.Generation != 1 {
		t.Errorf("after a restart: %+v, %v", state, err)
	}
	if state, err := first.Load(t.Context()); err != nil || state.Generation != 3 {
		t.Errorf("the first one's place is %+v, %v", state, err)
	}
	// An empty batch moves the place and nothing else.
	apply(t, first, batch(4, 10))
	totals, generation, err = first.Totals(t.Context(), []link.Key{key(1)})
	if err != nil || generation != 4 || totals[0].Clicks != 20 {
		t.Errorf("%d clicks of generation %d, %v; want 20 of 4", totals[0].Clicks, generation, err)
	}
}
