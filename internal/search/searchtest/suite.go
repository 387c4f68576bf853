// Package searchtest proves drivers of search.Index: [Run] is the suite and [Memory]
// the model that it compares them with.
package searchtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
	"curt/internal/search"
)

// Harness is what a driver gives to the suite.
type Harness struct {
	// Open returns an empty index, closed by the test's clean-up.
	Open func(t testing.TB) search.Index
	// Again closes the index and opens its data anew; nil = nothing is kept.
	Again func(t testing.TB, x search.Index) search.Index
}

// Run proves a driver.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"empty", empty},
		{"position and documents move together", together},
		{"ranges", ranges},
		{"model", models},
		{"walks are stable", stable},
		{"refusals", refusals},
		{"reset", reset},
		{"parallel", parallel},
		{"context and close", contexts},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, h) })
	}
}

// id makes ids that sort as their numbers do.
func id(n int) (id link.ID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)<<16)
	id[15] = 1
	return id
}

func doc(n int, terms ...string) search.Document {
	return search.Document{ID: id(n), Key: link.Key{Code: link.Code(fmt.Sprintf("code%d", n))}, Terms: terms}
}

func apply(t testing.TB, x search.Index, b search.Batch) {
	t.Helper()
	if err := x.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// walk reads all pages.
func walk(t testing.TB, x search.Index, q search.Query, p search.Page) (all []search.Hit) {
	t.Helper()
	for range 100_000 {
		hits, err := x.Find(t.Context(), q, p)
		if err != nil || len(hits.Found) > p.Limit {
			t.Fatalf("%d hits on a page of %d, %v", len(hits.Found), p.Limit, err)
		}
		all = append(all, hits.Found...)
		if !hits.More {
			return all
		}
		p.From = hits.Next
	}
	t.Fatal("the walk has no end")
	return nil
}

func empty(t *testing.T, h Harness) {
	x := h.Open(t)
	if p, err := x.Position(t.Context()); err != nil || p != (search.Position{}) {
		t.Errorf("position %+v, %v", p, err)
	}
	if got := walk(t, x, search.Query{}, search.Page{Limit: 1}); len(got) > 0 {
		t.Errorf("found %v", got)
	}
	if more, err := x.Tidy(t.Context(), true); more || err != nil {
		t.Errorf("tidy: %t, %v", more, err)
	}
}

func together(t *testing.T, h Harness) {
	x := h.Open(t)
	want := search.Position{After: id(7), Changes: "1:9,0,4", Creates: "a/1", Filled: true}
	apply(t, x, search.Batch{Position: want, Docs: []search.Document{doc(7, "a")}})
	if h.Again != nil {
		x = h.Again(t, x)
	}
	if got, err := x.Position(t.Context()); err != nil || got != want {
		t.Errorf("position %+v, %v", got, err)
	}
	if got := walk(t, x, search.Query{All: []search.Range{search.Exactly("a")}}, search.Page{Limit: 3}); len(got) != 1 || got[0].Key.Code != "code7" {
		t.Errorf("found %v", got)
	}
}

func ranges(t *testing.T, h Harness) {
	x := h.Open(t)
	apply(t, x, search.Batch{Docs: []search.Document{
		doc(1, "a", "ab", "b"), doc(2, "ab"), doc(3, "abc", "\xff\xff"), doc(4), doc(5, "", "ac", strings.Repeat("z", search.MaxTerm)),
	}})
	for _, c := range []struct {
		all, none []search.Range
		want      []int
	}{
		{want: []int{1, 2, 3, 4, 5}},
		{all: []search.Range{search.Exactly("a")}, want: []int{1}},
		{all: []search.Range{search.Exactly("ab")}, want: []int{1, 2}},
		{all: []search.Range{search.Prefixed("ab")}, want: []int{1, 2, 3}},
		{all: []search.Range{search.Prefixed("ab"), search.Prefixed("b")}, want: []int{1}},
		{all: []search.Range{search.Prefixed("\xff")}, want: []int{3}},
		{all: []search.Range{search.Prefixed("")}, want: []int{1, 2, 3, 5}},
		{all: []search.Range{search.Exactly("")}, want: []int{5}},
		{all: []search.Range{{From: "abd"}}, want: []int{1, 3, 5}},
		{all: []search.Range{{From: "a", To: "a"}}},
		{all: []search.Range{{From: "b", To: "a"}}},
		{all: []search.Range{search.Exactly("none")}},
		{none: []search.Range{search.Prefixed("ab")}, want: []int{4, 5}},
		{all: []search.Range{search.Prefixed("a")}, none: []search.Range{search.Exactly("b"), search.Exactly("abc")}, want: []int{2, 5}},
		{none: []search.Range{search.Prefixed("")}, want: []int{4}},
	} {
		var want []search.Hit
		for _, n := range c.want {
			want = append(want, search.Hit{ID: id(n), Key: doc(n).Key})
		}
		q := search.Query{All: c.all, None: c.none}
		if got := walk(t, x, q, search.Page{Limit: 2, Oldest: true}); !cmp.Equal(got, want) {
			t.Errorf("%+v: %s", q, cmp.Diff(want, got))
		}
		slices.Reverse(want)
		if got := walk(t, x, q, search.Page{Limit: 2}); !cmp.Equal(got, want) {
			t.Errorf("%+v, newest first: %s", q, cmp.Diff(want, got))
		}
	}
}

// models compares random histories with Memory.
func models(t *testing.T, h Harness) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			x, m := h.Open(t), NewMemory()
			for step := range 60 {
				b := randomBatch(r, step)
				apply(t, x, b)
				apply(t, m, b)
				if r.IntN(3) == 0 {
					if _, err := x.Tidy(t.Context(), r.IntN(3) == 0); err != nil {
						t.Fatal(err)
					}
				}
				if h.Again != nil && r.IntN(15) == 0 {
					x = h.Again(t, x)
				}
				compare(t, r, x, m)
			}
			for more := true; more; {
				var err error
				if more, err = x.Tidy(t.Context(), true); err != nil {
					t.Fatal(err)
				}
			}
			for range 20 {
				compare(t, r, x, m)
			}
		})
	}
}

// randomBatch adds new documents at the end, replaces old ones and removes some.
func randomBatch(r *rand.Rand, step int) (b search.Batch) {
	b.Position = search.Position{After: id(step), Changes: link.Sequence(step).Position()}
	used := map[int]bool{}
	pick := func(n int) bool {
		fresh := !used[n]
		used[n] = true
		return fresh
	}
	for range r.IntN(40) {
		if n := step*40 + r.IntN(40); pick(n) {
			b.Docs = append(b.Docs, doc(n, randomTerms(r, n)...))
		}
	}
	for range r.IntN(6) {
		if n := r.IntN(step*40 + 1); pick(n) {
			b.Docs = append(b.Docs, doc(n, randomTerms(r, n)...))
		}
	}
	for range r.IntN(6) {
		if n := r.IntN(step*40 + 1); pick(n) {
			b.Gone = append(b.Gone, id(n))
		}
	}
	return b
}

func randomTerms(r *rand.Rand, n int) []string {
	terms := []string{"all", fmt.Sprintf("unique%07d", n*7919%1_000_003), []string{"odd", "even"}[n%2]}
	for i := range 5 {
		if r.IntN(1<<i) == 0 {
			terms = append(terms, fmt.Sprint("rare", i))
		}
	}
	return terms
}

func compare(t *testing.T, r *rand.Rand, x, m search.Index) {
	t.Helper()
	pool := []search.Range{
		search.Exactly("all"), search.Exactly("odd"), search.Exactly("even"), search.Exactly("rare4"), search.Exactly("nothing"),
		search.Prefixed("rare"), search.Prefixed("u"), search.Prefixed(fmt.Sprintf("unique%03d", r.IntN(1000))),
		{From: "odd", To: "rare2"},
	}
	var q search.Query
	for range r.IntN(3) {
		q.All = append(q.All, pool[r.IntN(len(pool))])
	}
	if r.IntN(3) == 0 {
		q.None = append(q.None, pool[r.IntN(len(pool))])
	}
	p := search.Page{Limit: 1 + r.IntN(60), Oldest: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		p.From = id(r.IntN(2400))
	}
	if got, want := walk(t, x, q, p), walk(t, m, q, p); !cmp.Equal(got, want) {
		t.Fatalf("%+v %+v: %s", q, p, cmp.Diff(want, got))
	}
}

// stable walks while documents come and go on both sides of the position.
func stable(t *testing.T, h Harness) {
	x := h.Open(t)
	for n := 0; n < 300; n += 3 {
		apply(t, x, search.Batch{Docs: []search.Document{doc(n, "a")}})
	}
	seen, p := map[link.ID]int{}, search.Page{Limit: 7}
	for step := 0; ; step++ {
		hits, err := x.Find(t.Context(), search.Query{All: []search.Range{search.Exactly("a")}}, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, hit := range hits.Found {
			seen[hit.ID]++
		}
		if !hits.More {
			break
		}
		p.From = hits.Next
		apply(t, x, search.Batch{Docs: []search.Document{doc(3*step+1, "a"), doc(301+3*step, "a"), doc(150, "a", "b")}})
		if _, err := x.Tidy(t.Context(), step%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; n < 300; n += 3 {
		if seen[id(n)] != 1 {
			t.Errorf("document %d came %d times", n, seen[id(n)])
		}
	}
}

func refusals(t *testing.T, h Harness) {
	x := h.Open(t)
	before := search.Position{After: id(1)}
	apply(t, x, search.Batch{Position: before, Docs: []search.Document{doc(1, "a")}, Gone: []link.ID{id(99)}})
	for _, b := range []search.Batch{
		{Docs: []search.Document{doc(2, "a"), doc(2, "b")}},
		{Docs: []search.Document{doc(2, strings.Repeat("x", search.MaxTerm+1))}, Gone: []link.ID{id(1)}},
	} {
		if err := x.Apply(t.Context(), b); err == nil {
			t.Error("a bad batch was taken")
		}
	}
	if p, err := x.Position(t.Context()); p != before || err != nil {
		t.Errorf("position %+v, %v", p, err)
	}
	if got := walk(t, x, search.Query{}, search.Page{Limit: 9}); len(got) != 1 || got[0].ID != id(1) {
		t.Errorf("a refused batch left %v", got)
	}
}

func reset(t *testing.T, h Harness) {
	x := h.Open(t)
	apply(t, x, search.Batch{Position: search.Position{Changes: "4"}, Docs: []search.Document{doc(1, "a")}})
	if err := x.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	empty(t, Harness{Open: func(testing.TB) search.Index { return x }})
	apply(t, x, search.Batch{Docs: []search.Document{doc(2, "a")}})
	if got := walk(t, x, search.Query{}, search.Page{Limit: 9}); len(got) != 1 {
		t.Errorf("after a reset: %v", got)
	}
}

// parallel reads while one writes: each answer is of one moment.
func parallel(t *testing.T, h Harness) {
	x := h.Open(t)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				hits, err := x.Find(t.Context(), search.Query{All: []search.Range{search.Exactly("pair")}}, search.Page{Limit: 10_000})
				if err != nil || len(hits.Found)%2 != 0 && !hits.More {
					t.Errorf("%d documents of pairs, %v", len(hits.Found), err)
					return
				}
			}
		})
	}
	for n := range 150 {
		b := search.Batch{Docs: []search.Document{doc(2*n, "pair"), doc(2*n+1, "pair")}}
		if n > 10 {
			b.Gone = []link.ID{id(2 * (n - 10)), id(2*(n-10) + 1)}
		}
		apply(t, x, b)
		if _, err := x.Tidy(t.Context(), n%10 == 0); err != nil {
			t.Error(err)
		}
	}
	stop()
	readers.Wait()
}

func contexts(t *testing.T, h Harness) {
	x := h.Open(t)
	apply(t, x, search.Batch{Docs: []search.Document{doc(1, "a")}})
	reason := errors.New("the caller went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := x.Find(ctx, search.Query{}, search.Page{Limit: 1}); !errors.Is(err, reason) {
		t.Errorf("find: %v", err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := x.Find(t.Context(), search.Query{}, search.Page{Limit: 1})
	if !errors.Is(err, search.ErrUnavailable) {
		t.Errorf("find after close: %v", err)
	}
	if err := x.Apply(t.Context(), search.Batch{}); !errors.Is(err, search.ErrUnavailable) {
		t.Errorf("apply after close: %v", err)
	}
	if err := x.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
}
