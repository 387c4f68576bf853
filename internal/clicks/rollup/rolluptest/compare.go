package rolluptest

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// same compares two stores over the keys, and the values of each row by itself.
func same(t *testing.T, got, want rollup.Store, keys []link.Key) {
	t.Helper()
	alike(t, got, want, keys, true)
}

// alike compares two stores over the keys, and values where they are asked for.
func alike(t *testing.T, got, want rollup.Store, keys []link.Key, dimensions bool) {
	t.Helper()
	gotTotals, gotGeneration, err := got.Totals(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	wantTotals, wantGeneration, err := want.Totals(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(wantTotals, gotTotals); d != "" || gotGeneration != wantGeneration {
		t.Fatalf("totals of generation %d, want %d: %s", gotGeneration, wantGeneration, d)
	}
	for _, k := range keys {
		g, err := got.Read(t.Context(), k, rollup.WantVisitors, everything()...)
		if err != nil {
			t.Fatal(err)
		}
		w, err := want.Read(t.Context(), k, rollup.WantVisitors, everything()...)
		if err != nil {
			t.Fatal(err)
		}
		if d := gocmp.Diff(w, g, cmpopts.EquateEmpty(), gocmp.Comparer(sameVisitors), cmpopts.IgnoreFields(rollup.BucketDelta{}, "Digest")); d != "" {
			t.Fatalf("rows of %s: %s", k, d)
		}
		if !dimensions {
			continue
		}
		for _, row := range w.Rows {
			one := rollup.Span{Granularity: row.Bucket.Granularity, First: row.Bucket.Ordinal, Last: row.Bucket.Ordinal}
			if d := gocmp.Diff(values(t, want, k, one), values(t, got, k, one)); d != "" {
				t.Fatalf("values of %s, %+v: %s", k, row.Bucket, d)
			}
		}
		if d := gocmp.Diff(values(t, want, k, everything()...), values(t, got, k, everything()...)); d != "" {
			t.Fatalf("values of %s: %s", k, d)
		}
	}
}

// values are the sums of every dimension over some spans, by value.
func values(t *testing.T, s rollup.Store, k link.Key, spans ...rollup.Span) (all [clicks.NumDimensions]map[string]rollup.Value) {
	t.Helper()
	var dimensions []clicks.Dimension
	for d := range all {
		dimensions = append(dimensions, clicks.Dimension(d))
	}
	sums := rollup.NewSums(dimensions...)
	generation, err := s.Sum(t.Context(), k, sums, spans...)
	if state, loadErr := s.Load(t.Context()); err != nil || loadErr != nil || generation != state.Generation {
		t.Fatalf("sums of generation %d of %d: %v, %v", generation, state.Generation, err, loadErr)
	}
	for d := range all {
		all[d] = map[string]rollup.Value{}
		for _, v := range sums.Values(clicks.Dimension(d)) {
			if _, twice := all[d][v.Value]; twice {
				t.Errorf("%s of %s comes twice", v.Value, clicks.Dimension(d))
			}
			all[d][v.Value] = v
		}
	}
	return all
}

func sameVisitors(a, b rollup.Visitors) bool { return string(a.Append(nil)) == string(b.Append(nil)) }
