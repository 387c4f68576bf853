package background

import (
	"slices"
	"testing"
)

func TestABurstIsOverOnce(t *testing.T) {
	const much = worthCollecting
	type tick struct{ cycles, grown uint64 }
	for name, test := range map[string]struct {
		ticks []tick
		want  []int // the ticks at which a burst is over
	}{
		"nothing":                {[]tick{{0, 0}, {0, 0}, {0, 0}, {0, 0}}, nil},
		"a burst":                {[]tick{{0, much}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}}, []int{3}},
		"not worth it":           {[]tick{{0, much / 2}, {0, 0}, {0, 0}, {0, 0}, {0, 0}}, nil},
		"small ones add up":      {[]tick{{0, much / 2}, {0, 0}, {0, 0}, {0, 0}, {0, much / 2}, {0, 0}, {0, 0}, {0, 0}}, []int{7}},
		"never calm":             {[]tick{{0, much}, {0, 2 * calm}, {1, 2 * calm}, {1, 2 * calm}, {2, 2 * calm}}, nil},
		"collected meanwhile":    {[]tick{{0, much}, {1, much / 2}, {1, 0}, {2, 0}, {2, 0}, {2, 0}}, nil},
		"while it was collected": {[]tick{{0, much}, {1, much}, {1, 0}, {1, 0}, {1, 0}, {1, 0}}, []int{4}},
	} {
		var b burst
		var allocated uint64
		var got []int
		for i, tick := range test.ticks {
			allocated += tick.grown
			if b.ended(tick.cycles, allocated) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: over at %v, want %v", name, got, test.want)
		}
	}
}
