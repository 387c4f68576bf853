package hist_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"curt/bench/internal/hist"
)

// nearestRank is the definition of the quantile, on the sorted durations.
func nearestRank(sorted []time.Duration, q float64) time.Duration {
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-6))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func TestQuantilesAreNeverBelowTheTruthAndHardlyAbove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Uint64Range(0, 1<<rapid.UintRange(0, 39).Draw(t, "bits")).Draw(t, "ns"))
		}), 1, 500).Draw(t, "durations")
		var h hist.Histogram
		for _, d := range all {
			h.Record(d)
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
			want, got := nearestRank(all, q), h.Quantile(q)
			if got < want || float64(got) > float64(want)*(1+1.0/256) {
				t.Fatalf("quantile %v of %d durations = %d, the true one is %d", q, len(all), got, want)
			}
		}
		if h.Max() != all[len(all)-1] || h.Count() != uint64(len(all)) {
			t.Fatalf("max %d, count %d, want %d, %d", h.Max(), h.Count(), all[len(all)-1], len(all))
		}
	})
}

func TestHundredDurationsHaveExactRanks(t *testing.T) {
	var h hist.Histogram
	for i := range 100 {
		h.Record(time.Duration(i + 1))
	}
	for q, want := range map[float64]time.Duration{0.5: 50, 0.99: 99, 0.999: 100, 1: 100, 0: 1} {
		if got := h.Quantile(q); got != want {
			t.Errorf("quantile %v = %d, want %d", q, got, want)
		}
	}
}

func TestMergeIsRecordingTogether(t *testing.T) {
	var a, b, both hist.Histogram
	for i := range 10_000 {
		d := time.Duration(i) * time.Duration(i) * 17
		both.Record(d)
		if i%3 == 0 {
			a.Record(d)
		} else {
			b.Record(d)
		}
	}
	a.Merge(&b)
	if a != both {
		t.Error("merged histogram differs from the one that recorded everything")
	}
}

func TestOddDurations(t *testing.T) {
	var h hist.Histogram
	if h.Quantile(0.99) != 0 {
		t.Error("an empty histogram has a quantile")
	}
	h.Record(-time.Second)
	if got := h.Quantile(1); got != 0 {
		t.Errorf("a negative duration counts as %s, want 0", got)
	}
	h.Record(24 * time.Hour)
	if h.Max() != 24*time.Hour || h.Count() != 2 {
		t.Errorf("max %s, count %d after a day", h.Max(), h.Count())
	}
}

func BenchmarkRecord(b *testing.B) {
	var h hist.Histogram
	for i := range b.N {
		h.Record(time.Duration(i) * 37)
	}
}
