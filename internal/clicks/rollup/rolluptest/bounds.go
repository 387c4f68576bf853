package rolluptest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
)

func (h Harness) limit(t *testing.T) {
	s := h.Open(t)
	r := rand.New(rand.NewPCG(11, 12))
	want := uint64(0)
	for generation := range uint64(5) {
		d := delta(1, someQuarter, 1, r)
		var values []rollup.Value
		for i := range 150 {
			n := uint64(1)
			if i == 7 {
				n = 50
			}
			name := fmt.Sprintf("%d-%03d.example", generation, i)
			if i == 7 {
				name = "always.example"
			}
			values = append(values, rollup.Value{Value: name, Clicks: n, Humans: n})
			want += n
		}
		slices.SortFunc(values, func(a, b rollup.Value) int { return strings.Compare(a.Value, b.Value) })
		d.Buckets[0].Rollup.Dimensions[clicks.ReferrerHost] = values
		apply(t, s, batch(generation+1, 10, d))
	}
	for _, span := range everything() {
		values, sum, always := values(t, s, key(1), span)[clicks.ReferrerHost], uint64(0), uint64(0)
		for _, v := range values {
			sum += v.Clicks
			if v.Value == "always.example" {
				always = v.Clicks
			}
		}
		if sum != want || always != 250 || len(values) > clicks.MaxValues+1 {
			t.Errorf("%+v: %d values with %d clicks, want %d; the most clicked has %d of 250", span, len(values), sum, want, always)
		}
	}
}

func (h Harness) visitors(t *testing.T) {
	s := h.Open(t)
	r := rand.New(rand.NewPCG(13, 14))
	for generation := range uint64(10) {
		apply(t, s, batch(generation+1, 10, delta(1, someQuarter, 1000, r)))
		stored, err := s.Read(t.Context(), key(1), rollup.WantVisitors, everything()...)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range stored.Rows {
			want := float64(generation+1) * 1000
			got := float64(row.Rollup.Visitors.Count())
			if want <= rollup.MaxExact && got != want || got < 0.97*want || got > 1.03*want {
				t.Errorf("%v visitors of %v", got, want)
			}
		}
	}
}
