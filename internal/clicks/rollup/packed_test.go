package rollup_test

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
	"curt/internal/clicks/rollup"
	"curt/internal/testkit"
)

func TestVisitorsAreExactThenALibrarySketch(t *testing.T) {
	testkit.Unraced(t)
	r := rand.New(rand.NewPCG(1, 1))
	var set rollup.Visitors
	sketch := hyperloglog.NewNoSparse()
	stored, seen := []byte(nil), map[uint64]bool{}
	for len(seen) < 60000 {
		var delta rollup.Visitors
		tags := make([]uint64, r.IntN(700))
		for i := range tags {
			tags[i] = max(r.Uint64()>>r.IntN(20), 1) // skewed tags reach every register value
			seen[tags[i]] = true
			sketch.InsertHash(tags[i])
		}
		delta.Add(tags)
		set.Merge(delta)
		var err error
		if stored, err = rollup.MergeVisitors(nil, stored, &delta); err != nil {
			t.Fatal(err)
		}
		want := sketch.Estimate()
		if len(seen) <= rollup.MaxExact {
			want = uint64(len(seen))
		}
		if got := set.Count(); got != want {
			t.Fatalf("%d visitors of %d, the library says %d", got, len(seen), want)
		}
		decoded, err := rollup.DecodeVisitors(stored)
		if err != nil || decoded.Count() != want {
			t.Fatalf("stored: %d visitors, %v; want %d", decoded.Count(), err, want)
		}
	}
}

func TestVisitorsEstimate(t *testing.T) {
	testkit.Unraced(t)
	r := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{1, 100, rollup.MaxExact, rollup.MaxExact + 1, 10_000, 200_000} {
		var v rollup.Visitors
		tags := make([]uint64, 0, 2*n)
		for range n {
			tag := r.Uint64()
			tags = append(tags, tag, tag)
		}
		v.Add(append(tags, 0))
		if got := float64(v.Count()); n <= rollup.MaxExact && got != float64(n) || math.Abs(got-float64(n)) > 0.03*float64(n) {
			t.Errorf("%v visitors of %d", got, n)
		}
	}
}

// genValues draws what one delta has of a dimension, sorted by value.
func genValues(t *rapid.T) (values []rollup.Value) {
	names := rapid.SliceOfNDistinct(rapid.IntRange(0, 400), 0, 150, rapid.ID[int]).Draw(t, "names")
	for i := range 401 {
		for _, n := range names {
			if n == i {
				values = append(values, rollup.Value{
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
		var sums [clicks.NumDimensions]map[string]rollup.Value
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			var delta [clicks.NumDimensions][]rollup.Value
			for _, d := range rapid.SliceOfDistinct(rapid.IntRange(0, clicks.NumDimensions-1), rapid.ID[int]).Draw(t, "dimensions") {
				delta[d] = genValues(t)
				if sums[d] == nil {
					sums[d] = map[string]rollup.Value{}
				}
				for _, v := range delta[d] {
					s := sums[d][v.Value]
					sums[d][v.Value] = rollup.Value{Value: v.Value, Clicks: s.Clicks + v.Clicks, Humans: s.Humans + v.Humans}
				}
			}
			var err error
			if stored, err = rollup.MergeDimensions(nil, stored, &delta); err != nil {
				t.Fatal(err)
			}
		}
		got, err := rollup.DecodeDimensions(stored)
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
func compareDimension(t *rapid.T, d clicks.Dimension, got []rollup.Value, want map[string]rollup.Value) {
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
		var sums [15]rollup.Minute
		for range rapid.IntRange(0, 5).Draw(t, "batches") {
			var delta []rollup.Minute
			for i := range sums {
				if rapid.Bool().Draw(t, "active") {
					m := rollup.Minute{Index: uint8(i), Clicks: rapid.Uint64Range(1, 1<<50).Draw(t, "clicks"), Humans: rapid.Uint64Range(0, 9).Draw(t, "humans")}
					delta = append(delta, m)
					sums[i] = rollup.Minute{Index: m.Index, Clicks: sums[i].Clicks + m.Clicks, Humans: sums[i].Humans + m.Humans}
				}
			}
			var err error
			if stored, err = rollup.MergeMinutes(nil, stored, delta); err != nil {
				t.Fatal(err)
			}
		}
		var want []rollup.Minute
		for _, m := range sums {
			if m.Clicks > 0 {
				want = append(want, m)
			}
		}
		got, err := rollup.DecodeMinutes(stored)
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || err != nil {
			t.Fatal(d, err)
		}
	})
}

// FuzzPacked feeds any bytes as stored columns: they are read and merged, or refused.
func FuzzPacked(f *testing.F) {
	var v rollup.Visitors
	v.Add([]uint64{1, 2, 3})
	f.Add(v.Append(nil))
	minutes, err := rollup.MergeMinutes(nil, nil, []rollup.Minute{{Index: 3, Clicks: 4, Humans: 2}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(minutes)
	var dims [clicks.NumDimensions][]rollup.Value
	dims[clicks.Device] = []rollup.Value{{Value: "desktop", Clicks: 2, Humans: 1}}
	packed, err := rollup.MergeDimensions(nil, nil, &dims)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		if v, err := rollup.DecodeVisitors(b); err == nil {
			v.Count()
			if again := v.Append(nil); !bytes.Equal(again, b) && len(b) > 1 {
				t.Errorf("%x is stored as %x", b, again)
			}
		}
		decoded, err := rollup.DecodeDimensions(b)
		if merged, mergeErr := rollup.MergeDimensions(nil, b, &dims); err == nil && mergeErr == nil {
			if _, err := rollup.DecodeDimensions(merged); err != nil {
				t.Errorf("merged %x into %v gives %x: %v", b, decoded, merged, err)
			}
		}
		if sumErr := rollup.NewSums(clicks.Device).AddPacked(b); (sumErr == nil) != (err == nil) {
			t.Errorf("%x is added up: %v, unpacked: %v", b, sumErr, err)
		}
		if _, err := rollup.DecodeMinutes(b); err == nil {
			if merged, err := rollup.MergeMinutes(nil, b, []rollup.Minute{{Index: 1, Clicks: 1}}); err != nil {
				t.Errorf("minutes %x cannot be merged: %v", b, err)
			} else if _, err := rollup.DecodeMinutes(merged); err != nil {
				t.Errorf("merged minutes %x: %v", merged, err)
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("stored bytes were changed")
		}
	})
}

func TestADigestAddsUp(t *testing.T) {
	var people rollup.Visitors
	people.Add([]uint64{3, 1, 2})
	packed, err := rollup.MergeDay(nil, nil, []rollup.Minute{{Index: 95, Clicks: 300, Humans: 7}}, people.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	packed, err = rollup.MergeDay(nil, packed, []rollup.Minute{{Index: 0, Clicks: 1}, {Index: 95, Clicks: 1, Humans: 1}}, people.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	got, err := rollup.DecodeDay(packed)
	want := &rollup.DayDigest{Visitors: 3, Quarters: []rollup.Minute{{Index: 0, Clicks: 1}, {Index: 95, Clicks: 301, Humans: 8}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if !got.Adds(rollup.Counts{Clicks: 302, Humans: 8}) || got.Adds(rollup.Counts{Clicks: 303, Humans: 8}) || (*rollup.DayDigest)(nil).Adds(rollup.Counts{}) {
		t.Error("what adds up, and what does not")
	}
	many := make([]uint64, 5000)
	for i := range many {
		many[i] = uint64(i+1) * 0x9e3779b97f4a7c15
	}
	people.Add(many)
	packed, err = rollup.MergeDay(nil, packed, nil, people.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, err = rollup.DecodeDay(packed); err != nil || got.Visitors != people.Count() {
		t.Errorf("%d visitors, %v; want %d", got.Visitors, err, people.Count())
	}
}

func FuzzDigest(f *testing.F) {
	f.Add([]byte{2, 3, 0, 1, 0, 95, 2, 2}, []byte{1, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{1}, []byte{2})
	f.Fuzz(func(t *testing.T, stored, visitors []byte) {
		packed, err := rollup.MergeDay(nil, stored, []rollup.Minute{{Index: 40, Clicks: 1}}, visitors)
		if err != nil {
			return
		}
		if d, err := rollup.DecodeDay(packed); err != nil || d == nil {
			t.Errorf("%x became %x: %v", stored, packed, err)
		}
	})
}
