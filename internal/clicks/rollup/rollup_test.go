package rollup_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
)

// Roll-ups add up value by value and minute by minute, whichever of the two has one.
func TestRollupsAddUp(t *testing.T) {
	values := func(names string) (v []rollup.Value) {
		for i, name := range names {
			v = append(v, rollup.Value{Value: string(name), Clicks: uint64(i) + 10, Humans: uint64(i) + 1})
		}
		return v
	}
	minutes := func(indexes ...uint8) (m []rollup.Minute) {
		for _, i := range indexes {
			m = append(m, rollup.Minute{Index: i, Clicks: 10 + uint64(i), Humans: uint64(i)})
		}
		return m
	}
	for _, c := range []struct {
		a, b string
		want []rollup.Value
	}{
		{"", "", nil},
		{"x", "", values("x")},
		{"", "xy", values("xy")},
		{"x", "x", []rollup.Value{{Value: "x", Clicks: 20, Humans: 2}}},
		{"b", "a", []rollup.Value{{Value: "a", Clicks: 10, Humans: 1}, {Value: "b", Clicks: 10, Humans: 1}}},
		{"ac", "bc", []rollup.Value{{Value: "a", Clicks: 10, Humans: 1}, {Value: "b", Clicks: 10, Humans: 1}, {Value: "c", Clicks: 22, Humans: 4}}},
		{"bd", "ace", []rollup.Value{
			{Value: "a", Clicks: 10, Humans: 1},
			{Value: "b", Clicks: 10, Humans: 1},
			{Value: "c", Clicks: 11, Humans: 2},
			{Value: "d", Clicks: 11, Humans: 2},
			{Value: "e", Clicks: 12, Humans: 3},
		}},
	} {
		var a, b rollup.Rollup
		a.Clicks, b.Clicks = 3, 4
		a.Dimensions[0], b.Dimensions[0] = values(c.a), values(c.b)
		a.Minutes, b.Minutes = minutes(0, 3), minutes(3, 14)
		a.Add(&b)
		if diff := cmp.Diff(c.want, a.Dimensions[0]); diff != "" {
			t.Errorf("%q and %q (-want +got):\n%s", c.a, c.b, diff)
		}
		want := []rollup.Minute{{Index: 0, Clicks: 10}, {Index: 3, Clicks: 26, Humans: 6}, {Index: 14, Clicks: 24, Humans: 14}}
		if diff := cmp.Diff(want, a.Minutes); diff != "" {
			t.Errorf("minutes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(values(c.b), b.Dimensions[0]); diff != "" || a.Clicks != 7 {
			t.Errorf("%d clicks; what was added changed (-want +got):\n%s", a.Clicks, diff)
		}
	}
}

func TestTotalsAddUp(t *testing.T) {
	for _, c := range []struct{ a, b, want rollup.Total }{
		{rollup.Total{}, rollup.Total{FirstSeen: 5, LastClicked: 6}, rollup.Total{FirstSeen: 5, LastClicked: 6}},
		{rollup.Total{FirstSeen: 5, LastClicked: 6}, rollup.Total{}, rollup.Total{FirstSeen: 5, LastClicked: 6}},
		{rollup.Total{FirstSeen: 5, LastClicked: 6}, rollup.Total{FirstSeen: 4, LastClicked: 9}, rollup.Total{FirstSeen: 4, LastClicked: 9}},
		{rollup.Total{FirstSeen: 4, LastClicked: 9}, rollup.Total{FirstSeen: 5, LastClicked: 6}, rollup.Total{FirstSeen: 4, LastClicked: 9}},
	} {
		c.a.Counts, c.b.Counts, c.want.Counts = rollup.Counts{Clicks: 1, Humans: 2}, rollup.Counts{Clicks: 3, Humans: 4}, rollup.Counts{Clicks: 4, Humans: 6}
		got := c.a
		if got.Add(c.b); got != c.want {
			t.Errorf("%+v and %+v are %+v, want %+v", c.a, c.b, got, c.want)
		}
	}
}

// The most clicked stay, and the rest is one value; what is at the limit has no rest.
func TestLimitedValuesKeepTheMostClicked(t *testing.T) {
	v := func(name string, n uint64) rollup.Value { return rollup.Value{Value: name, Clicks: n, Humans: n / 2} }
	for _, c := range []struct{ have, want []rollup.Value }{
		{nil, nil},
		{[]rollup.Value{v("a", 2), v("b", 4)}, []rollup.Value{v("a", 2), v("b", 4)}},
		{[]rollup.Value{v("a", 2), v("b", 4), v("c", 6)}, []rollup.Value{v("b", 4), v("c", 6), v(clicks.Other, 2)}},
		{[]rollup.Value{v("a", 2), v("b", 2), v("c", 2)}, []rollup.Value{v("a", 2), v("b", 2), v(clicks.Other, 2)}},
		{[]rollup.Value{v("a", 2), v("b", 8), v("c", 6), v(clicks.Other, 4)}, []rollup.Value{v("b", 8), v("c", 6), v(clicks.Other, 6)}},
		{[]rollup.Value{v("a", 2), v(clicks.Other, 4)}, []rollup.Value{v("a", 2), v(clicks.Other, 4)}},
	} {
		byName := func(a, b rollup.Value) int { return strings.Compare(a.Value, b.Value) }
		slices.SortFunc(c.have, byName)
		slices.SortFunc(c.want, byName)
		have := slices.Clone(c.have)
		if diff := cmp.Diff(c.want, rollup.LimitValues(have, 2)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.have, diff)
		}
	}
}
