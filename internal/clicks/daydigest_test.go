package clicks_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks"
)

func TestADigestAddsUp(t *testing.T) {
	var people clicks.Visitors
	people.Add([]uint64{3, 1, 2})
	packed, err := clicks.MergeDay(nil, nil, []clicks.Minute{{Index: 95, Clicks: 300, Humans: 7}}, people.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	packed, err = clicks.MergeDay(nil, packed, []clicks.Minute{{Index: 0, Clicks: 1}, {Index: 95, Clicks: 1, Humans: 1}}, people.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	got, err := clicks.DecodeDay(packed)
	want := &clicks.DayDigest{Visitors: 3, Quarters: []clicks.Minute{{Index: 0, Clicks: 1}, {Index: 95, Clicks: 301, Humans: 8}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if !got.Adds(clicks.Counts{Clicks: 302, Humans: 8}) || got.Adds(clicks.Counts{Clicks: 303, Humans: 8}) || (*clicks.DayDigest)(nil).Adds(clicks.Counts{}) {
		t.Error("what adds up, and what does not")
	}
	many := make([]uint64, 5000)
	for i := range many {
		many[i] = uint64(i+1) * 0x9e3779b97f4a7c15
	}
	people.Add(many)
	packed, err = clicks.MergeDay(nil, packed, nil, people.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, err = clicks.DecodeDay(packed); err != nil || got.Visitors != people.Count() {
		t.Errorf("%d visitors, %v; want %d", got.Visitors, err, people.Count())
	}
}

func FuzzDigest(f *testing.F) {
	f.Add([]byte{2, 3, 0, 1, 0, 95, 2, 2}, []byte{1, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{1}, []byte{2})
	f.Fuzz(func(t *testing.T, stored, visitors []byte) {
		packed, err := clicks.MergeDay(nil, stored, []clicks.Minute{{Index: 40, Clicks: 1}}, visitors)
		if err != nil {
			return
		}
		if d, err := clicks.DecodeDay(packed); err != nil || d == nil {
			t.Errorf("%x became %x: %v", stored, packed, err)
		}
	})
}
