// Package rolluptest proves stores of roll-ups: the suite that every rollup.Store passes, and a
// store in memory that is its model.
package rolluptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// Harness says how a driver is opened.
type Harness struct {
	// Open returns an empty store that is closed with the test.
	Open func(t *testing.T) rollup.Store
	// Again returns a store on the same data as s, which is closed by it, as after
	// a restart.
	Again func(t *testing.T, s rollup.Store) rollup.Store
	// Other returns a store of another writer of the data of s, as another process has it;
	// nil = one process writes alone.
	Other func(t *testing.T, s rollup.Store) rollup.Store
}

// Run proves a driver.
func Run(t *testing.T, h Harness) {
	t.Run("empty", h.empty)
	t.Run("batches add up as in the model", h.model)
	t.Run("a batch counts once", h.once)
	t.Run("a batch that ends early changes nothing", h.halfway)
	t.Run("what was applied is there again", h.again)
	t.Run("chunks of every size", h.chunks)
	t.Run("dimensions are bounded and keep their sum", h.limit)
	t.Run("many visitors", h.visitors)
	t.Run("a view is one moment", h.view)
	t.Run("spans", h.spans)
	t.Run("context", h.context)
	if h.Other != nil {
		t.Run("several writers", h.several)
	}
}

func key(i int) link.Key {
	if i == 0 {
		return link.Key{} // the orphans
	}
	k := link.Key{Code: link.Code(fmt.Sprintf("code%d", i))}
	if i%3 == 0 {
		k.Domain = "links.example"
	}
	return k
}

// someQuarter is 2026-03-09 15:00 UTC.
const someQuarter = 1_970_076

// delta returns what n clicks by different visitors did to link i in a quarter.
func delta(i int, quarter uint32, n uint64, r *rand.Rand) rollup.LinkDelta {
	q := &rollup.Rollup{Counts: rollup.Counts{Clicks: n, Humans: n - n/3, Previews: n / 2, Fallbacks: n / 4, Refused: n / 5}}
	q.Minutes = []rollup.Minute{{Index: uint8(r.IntN(7)), Clicks: n - n/2, Humans: n / 3}, {Index: uint8(7 + r.IntN(8)), Clicks: n / 2, Humans: n / 4}}
	for _, d := range []clicks.Dimension{clicks.Country, clicks.ReferrerHost, clicks.UTMContent} {
		for v := range r.IntN(4) {
			q.Dimensions[d] = append(q.Dimensions[d], rollup.Value{Value: fmt.Sprintf("%d%d", v, r.IntN(3)), Clicks: n + uint64(v), Humans: n})
		}
	}
	q.Visitors.Add(tags(r, int(n)))
	day := rollup.BucketAt(rollup.Day, rollup.Bucket{Granularity: rollup.Quarter, Ordinal: quarter}.Start())
	first := int64(quarter) * 15 * 60 * 1000
	return rollup.LinkDelta{
		Key:   key(i),
		Total: rollup.Total{Counts: q.Counts, FirstSeen: first + 1, LastClicked: first + int64(n)},
		Buckets: []rollup.BucketDelta{
			{Bucket: rollup.Bucket{Granularity: rollup.Quarter, Ordinal: quarter}, Rollup: q},
			{Bucket: day, Rollup: q},
		},
	}
}

func tags(r *rand.Rand, n int) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = r.Uint64()
	}
	return all
}

// batch makes a batch of deltas in chunks of the given size.
func batch(generation uint64, size int, deltas ...rollup.LinkDelta) rollup.Batch {
	slices.SortFunc(deltas, func(a, b rollup.LinkDelta) int {
		return cmp.Or(strings.Compare(string(a.Key.Domain), string(b.Key.Domain)), strings.Compare(string(a.Key.Code), string(b.Key.Code)))
	})
	return rollup.Batch{
		State: rollup.State{Generation: generation, Position: clicklog.Position{Segment: 1_800_000_000_000, Offset: int64(generation) * 100}},
		Links: slices.Chunk(deltas, size),
	}
}

func apply(t *testing.T, s rollup.Store, b rollup.Batch) {
	t.Helper()
	if err := s.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// everything is wide enough for all rows of this suite.
func everything() []rollup.Span {
	return []rollup.Span{
		{Granularity: rollup.Quarter, First: someQuarter - 300, Last: someQuarter + 300},
		{Granularity: rollup.Day, First: someQuarter/96 - 4, Last: someQuarter/96 + 4},
	}
}

func (h Harness) empty(t *testing.T) {
	s := h.Open(t)
	if state, err := s.Load(t.Context()); err != nil || state != (rollup.State{}) {
		t.Errorf("Load = %+v, %v", state, err)
	}
	same(t, s, new(Memory), []link.Key{key(0), key(1)})
}

func (h Harness) model(t *testing.T) {
	s, model := h.Open(t), new(Memory)
	r := rand.New(rand.NewPCG(1, 2))
	keys := make([]link.Key, 40)
	for i := range keys {
		keys[i] = key(i)
	}
	for generation := range uint64(30) {
		var deltas []rollup.LinkDelta
		for i := range keys {
			if r.IntN(3) > 0 {
				continue
			}
			d := delta(i, someQuarter+uint32(r.IntN(200))-100, 1+r.Uint64N(9), r)
			if r.IntN(4) == 0 { // over midnight, perhaps
				o := delta(i, d.Buckets[0].Bucket.Ordinal+30, 2, r)
				if o.Buckets[1].Bucket != d.Buckets[1].Bucket {
					d.Buckets = append(d.Buckets, o.Buckets...)
					d.Total.Add(o.Total)
				}
			}
			deltas = append(deltas, d)
		}
		b := batch(generation+1, 7, deltas...)
		apply(t, s, b)
		apply(t, model, b)
		if state, err := s.Load(t.Context()); err != nil || state != b.State {
			t.Fatalf("Load = %+v, %v, want %+v", state, err, b.State)
		}
	}
	same(t, s, model, keys)
}

func (h Harness) once(t *testing.T) {
	s := h.Open(t)
	r := rand.New(rand.NewPCG(3, 4))
	b := batch(1, 10, delta(1, someQuarter, 5, r))
	apply(t, s, b)
	apply(t, s, b)
	totals, _, err := s.Totals(t.Context(), []link.Key{key(1)})
	if err != nil || totals[0].Clicks != 5 {
		t.Errorf("applied twice: %d clicks, %v; want 5", totals[0].Clicks, err)
	}
	for _, generation := range []uint64{0, 3, 9} {
		err := s.Apply(t.Context(), batch(generation, 10, delta(1, someQuarter, 5, r)))
		if !errors.Is(err, rollup.ErrGeneration) {
			t.Errorf("batch %d after 1: %v, want ErrGeneration", generation, err)
		}
	}
	if state, err := s.Load(t.Context()); err != nil || state != b.State {
		t.Errorf("Load = %+v, %v, want %+v", state, err, b.State)
	}
}

func (h Harness) halfway(t *testing.T) {
	s, model := h.Open(t), new(Memory)
	r := rand.New(rand.NewPCG(5, 6))
	first := batch(1, 10, delta(1, someQuarter, 5, r), delta(2, someQuarter, 5, r))
	apply(t, s, first)
	apply(t, model, first)
	whole := batch(2, 1, delta(1, someQuarter, 7, r), delta(2, someQuarter, 7, r), delta(4, someQuarter, 7, r))
	ctx, cancel := context.WithCancel(t.Context())
	half := whole
	half.Links = func(yield func([]rollup.LinkDelta) bool) {
		n := 0
		for chunk := range whole.Links {
			if n++; n == 3 {
				cancel()
			}
			if !yield(chunk) {
				return
			}
		}
	}
	if err := s.Apply(ctx, half); !errors.Is(err, context.Canceled) {
		t.Fatalf("Apply that was cancelled: %v", err)
	}
	keys := []link.Key{key(1), key(2), key(4)}
	same(t, s, model, keys)
	apply(t, s, whole)
	apply(t, model, whole)
	same(t, s, model, keys)
}

func (h Harness) again(t *testing.T) {
	s, model := h.Open(t), new(Memory)
	r := rand.New(rand.NewPCG(7, 8))
	b := batch(1, 10, delta(1, someQuarter, 5, r), delta(3, someQuarter, 3000, r))
	apply(t, s, b)
	apply(t, model, b)
	s = h.Again(t, s)
	same(t, s, model, []link.Key{key(1), key(3)})
	b = batch(2, 10, delta(1, someQuarter, 5, r))
	apply(t, s, b)
	apply(t, model, b)
	same(t, s, model, []link.Key{key(1), key(3)})
}

func (h Harness) chunks(t *testing.T) {
	for _, size := range []int{1, 2, 63, 64, 65, 130} {
		s, model := h.Open(t), new(Memory)
		r := rand.New(rand.NewPCG(9, uint64(size)))
		var keys []link.Key
		for generation := range uint64(2) {
			var deltas []rollup.LinkDelta
			keys = keys[:0]
			for i := range 2*size + 1 {
				deltas = append(deltas, delta(i, someQuarter+uint32(generation), 2, r))
				keys = append(keys, key(i))
			}
			b := batch(generation+1, size, deltas...)
			apply(t, s, b)
			apply(t, model, b)
		}
		alike(t, s, model, keys, false)
	}
}

// view reads two links that every batch counts alike, while batches are applied.
func (h Harness) view(t *testing.T) {
	s := h.Open(t)
	r := rand.New(rand.NewPCG(15, 16))
	done := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			totals, generation, err := s.Totals(t.Context(), []link.Key{key(1), key(2)})
			if err != nil || totals[0].Clicks != 3*generation || totals[1].Clicks != totals[0].Clicks {
				t.Errorf("generation %d: %+v, %v", generation, totals, err)
				return
			}
			stored, err := s.Read(t.Context(), key(1), 0, everything()...)
			if err != nil || stored.Total.Clicks != 3*stored.Generation {
				t.Errorf("generation %d: %+v, %v", stored.Generation, stored.Total, err)
				return
			}
			for _, row := range stored.Rows {
				if row.Rollup.Clicks != 3*stored.Generation {
					t.Errorf("generation %d: row %+v", stored.Generation, row.Rollup.Counts)
					return
				}
			}
		}
	})
	for generation := range uint64(100) {
		apply(t, s, batch(generation+1, 1, delta(1, someQuarter, 3, r), delta(2, someQuarter, 3, r)))
	}
	close(done)
	readers.Wait()
}

func (h Harness) spans(t *testing.T) {
	s := h.Open(t)
	r := rand.New(rand.NewPCG(17, 18))
	for i := range uint32(200) {
		apply(t, s, batch(uint64(i)+1, 1, delta(1, someQuarter+i, 1, r)))
	}
	for _, span := range []rollup.Span{
		{Granularity: rollup.Quarter, First: someQuarter, Last: someQuarter},
		{Granularity: rollup.Quarter, First: someQuarter - 5, Last: someQuarter + 5},
		{Granularity: rollup.Quarter, First: someQuarter + 30, Last: someQuarter + 150},
		{Granularity: rollup.Day, First: someQuarter / 96, Last: someQuarter/96 + 1},
		{Granularity: rollup.Day, First: 0, Last: 1},
	} {
		var want []uint32
		for o := span.First; o <= span.Last; o++ {
			if span.Granularity == rollup.Quarter && o >= someQuarter && o < someQuarter+200 ||
				span.Granularity == rollup.Day && o >= someQuarter/96 && o <= (someQuarter+199)/96 {
				want = append(want, o)
			}
		}
		stored, err := s.Read(t.Context(), key(1), 0, span)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint32
		for _, row := range stored.Rows {
			if row.Bucket.Granularity != span.Granularity {
				t.Errorf("%+v: row of %+v", span, row.Bucket)
			}
			got = append(got, row.Bucket.Ordinal)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: rows %v, want %v", span, got, want)
		}
	}
}

func (h Harness) context(t *testing.T) {
	s := h.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Load: %v", err)
	}
	if _, _, err := s.Totals(ctx, []link.Key{key(1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("Totals: %v", err)
	}
	if _, err := s.Read(ctx, key(1), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Read: %v", err)
	}
	if _, err := s.Sum(ctx, key(1), rollup.NewSums(clicks.Country)); !errors.Is(err, context.Canceled) {
		t.Errorf("Sum: %v", err)
	}
	r := rand.New(rand.NewPCG(19, 20))
	if err := s.Apply(ctx, batch(1, 1, delta(1, someQuarter, 1, r))); !errors.Is(err, context.Canceled) {
		t.Errorf("Apply: %v", err)
	}
}
