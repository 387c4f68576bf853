package clicks_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/axiomhq/hyperloglog"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"curt/internal/clicks"
	"curt/internal/testkit"
)

func TestVisitorsAreExactThenALibrarySketch(t *testing.T) {
	testkit.Unraced(t)
	r := rand.New(rand.NewPCG(1, 1))
	var set clicks.Visitors
	sketch := hyperloglog.NewNoSparse()
	stored, seen := []byte(nil), map[uint64]bool{}
	for len(seen) < 60000 {
		var delta clicks.Visitors
		tags := make([]uint64, r.IntN(700))
		for i := range tags {
			tags[i] = max(r.Uint64()>>r.IntN(20), 1) // skewed tags reach every register value
			seen[tags[i]] = true
			sketch.InsertHash(tags[i])
		}
		delta.Add(tags)
		set.Merge(delta)
		var err error
		if stored, err = clicks.MergeVisitors(nil, stored, &delta); err != nil {
			t.Fatal(err)
		}
		want := sketch.Estimate()
		if len(seen) <= clicks.MaxExact {
			want = uint64(len(seen))
		}
		if got := set.Count(); got != want {
			t.Fatalf("%d visitors of %d, the library says %d", got, len(seen), want)
		}
		decoded, err := clicks.DecodeVisitors(stored)
		if err != nil || decoded.Count() != want {
			t.Fatalf("stored: %d visitors, %v; want %d", decoded.Count(), err, want)
		}
	}
}

func TestVisitorsEstimate(t *testing.T) {
	testkit.Unraced(t)
	r := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{1, 100, clicks.MaxExact, clicks.MaxExact + 1, 10_000, 200_000} {
		var v clicks.Visitors
		tags := make([]uint64, 0, 2*n)
		for range n {
			tag := r.Uint64()
			tags = append(tags, tag, tag)
		}
		v.Add(append(tags, 0))
		if got := float64(v.Count()); n <= clicks.MaxExact && got != float64(n) || math.Abs(got-float64(n)) > 0.03*float64(n) {
			t.Errorf("%v visitors of %d", got, n)
		}
	}
}

// genValues draws what one delta has of a dimension, sorted by value.
func genValues(t *rapid.T) (values []clicks.Value) {
	names := rapid.SliceOfNDistinct(rapid.IntRange(0, 400), 0, 150, rapid.ID[int]).Draw(t, "names")
	for i := range 401 {
		for _, n := range names {
			if n == i {
				values = append(values, clicks.Value{
					Value: fmt.Sprintf("%03d", i), Clicks: rapid.Uint64Range(1, 1<<40).Draw(t, "clicks"), Humans: rapid.Uint64Range(0, 300).Draw(t, "humans"),
				})
			}
		}
	}
	return values
}

func TestMergedDimensionsKeepEveryClick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stored []byte
		var sums [clicks.NumDimensions]map[string]clicks.Value
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			var delta [clicks.NumDimensions][]clicks.Value
			for _, d := range rapid.SliceOfDistinct(rapid.IntRange(0, clicks.NumDimensions-1), rapid.ID[int]).Draw(t, "dimensions") {
				delta[d] = genValues(t)
				if sums[d] == nil {
					sums[d] = map[string]clicks.Value{}
				}
				for _, v := range delta[d] {
					s := sums[d][v.Value]
					sums[d][v.Value] = clicks.Value{Value: v.Value, Clicks: s.Clicks + v.Clicks, Humans: s.Humans + v.Humans}
				}
			}
			var err error
			if stored, err = clicks.MergeDimensions(nil, stored, &delta); err != nil {
				t.Fatal(err)
			}
		}
		got, err := clicks.DecodeDimensions(stored)
		if err != nil {
			t.Fatal(err)
		}
		for d := range got {
			compareDimension(t, clicks.Dimension(d), got[d], sums[d])
		}
	})
}

// compareDimension compares exactly where the bound was not reached, and by the sum
// where it was.
func compareDimension(t *rapid.T, d clicks.Dimension, got []clicks.Value, want map[string]clicks.Value) {
	if len(got) > clicks.MaxValues+1 {
		t.Fatalf("%s has %d values", d, len(got))
	}
	var gotClicks, wantClicks uint64
	for i, v := range got {
		gotClicks += v.Clicks
		if i > 0 && got[i-1].Value >= v.Value {
			t.Fatalf("%s is not sorted", d)
		}
		if len(want) <= clicks.MaxValues && v != want[v.Value] {
			t.Fatalf("%s: %+v, want %+v", d, v, want[v.Value])
		}
	}
	for _, v := range want {
		wantClicks += v.Clicks
	}
	if gotClicks != wantClicks || len(want) <= clicks.MaxValues && len(got) != len(want) {
		t.Fatalf("%s: %d values with %d clicks, want %d with %d", d, len(got), gotClicks, len(want), wantClicks)
	}
}

func TestMergedMinutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stored []byte
		var sums [15]clicks.Minute
		for range rapid.IntRange(0, 5).Draw(t, "batches") {
			var delta []clicks.Minute
			for i := range sums {
				if rapid.Bool().Draw(t, "active") {
					m := clicks.Minute{Index: uint8(i), Clicks: rapid.Uint64Range(1, 1<<50).Draw(t, "clicks"), Humans: rapid.Uint64Range(0, 9).Draw(t, "humans")}
					delta = append(delta, m)
					sums[i] = clicks.Minute{Index: m.Index, Clicks: sums[i].Clicks + m.Clicks, Humans: sums[i].Humans + m.Humans}
				}
			}
			var err error
			if stored, err = clicks.MergeMinutes(nil, stored, delta); err != nil {
				t.Fatal(err)
			}
		}
		var want []clicks.Minute
		for _, m := range sums {
			if m.Clicks > 0 {
				want = append(want, m)
			}
		}
		got, err := clicks.DecodeMinutes(stored)
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || err != nil {
			t.Fatal(d, err)
		}
	})
}

// FuzzPacked feeds any bytes as stored columns: they are read and merged, or refused.
func FuzzPacked(f *testing.F) {
	var v clicks.Visitors
	v.Add([]uint64{1, 2, 3})
	f.Add(v.Append(nil))
	minutes, err := clicks.MergeMinutes(nil, nil, []clicks.Minute{{Index: 3, Clicks: 4, Humans: 2}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(minutes)
	var dims [clicks.NumDimensions][]clicks.Value
	dims[clicks.Device] = []clicks.Value{{Value: "desktop", Clicks: 2, Humans: 1}}
	packed, err := clicks.MergeDimensions(nil, nil, &dims)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		if v, err := clicks.DecodeVisitors(b); err == nil {
			v.Count()
			if again := v.Append(nil); !bytes.Equal(again, b) && len(b) > 1 {
				t.Errorf("%x is stored as %x", b, again)
			}
		}
		decoded, err := clicks.DecodeDimensions(b)
		if merged, mergeErr := clicks.MergeDimensions(nil, b, &dims); err == nil && mergeErr == nil {
			if _, err := clicks.DecodeDimensions(merged); err != nil {
				t.Errorf("merged %x into %v gives %x: %v", b, decoded, merged, err)
			}
		}
		if sumErr := clicks.NewSums(clicks.Device).AddPacked(b); (sumErr == nil) != (err == nil) {
			t.Errorf("%x is added up: %v, unpacked: %v", b, sumErr, err)
		}
		if _, err := clicks.DecodeMinutes(b); err == nil {
			if merged, err := clicks.MergeMinutes(nil, b, []clicks.Minute{{Index: 1, Clicks: 1}}); err != nil {
				t.Errorf("minutes %x cannot be merged: %v", b, err)
			} else if _, err := clicks.DecodeMinutes(merged); err != nil {
				t.Errorf("merged minutes %x: %v", merged, err)
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("stored bytes were changed")
		}
	})
}
