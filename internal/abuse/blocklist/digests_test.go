package blocklist_test

import (
	"math/rand/v2"
	"testing"

	"curt/internal/abuse/blocklist"
)

// A set has what was put into it and nothing that differs in the bits it keeps,
// however wrong the expectation of its size was.
func TestDigests(t *testing.T) {
	for name, c := range map[string]struct {
		n        int
		expected int64
		distinct uint64 // 0 = all
	}{
		"none": {0, 0, 0}, "none of many": {0, 1 << 20, 0}, "one": {1, 1, 0}, "one of many": {1, 1 << 20, 0}, "more than expected": {10_000, 1, 0},
		"as expected": {10_000, 10_000, 0}, "fewer": {10_000, 1 << 20, 0}, "all the same": {10_000, 10_000, 1}, "repeated": {10_000, 10_000, 100},
	} {
		t.Run(name, func(t *testing.T) {
			in := map[uint64]bool{}
			each := func(add func(uint64)) {
				r := rand.New(rand.NewPCG(1, uint64(c.n)))
				for range c.n {
					d := r.Uint64()
					if c.distinct != 0 {
						d = d % c.distinct * 0x9E3779B97F4A7C15
					}
					in[d] = true
					add(d)
				}
			}
			has, n, size, ok := blocklist.Digests(c.expected, each)
			if !ok || n != len(in) {
				t.Fatalf("%d of %d, %v", n, len(in), ok)
			}
			if c.n > 1000 && c.distinct == 0 && float64(size) > 5.6*float64(n) {
				t.Errorf("%d bytes for %d", size, n)
			}
			for d := range in {
				if !has(d) {
					t.Fatalf("%x is missing", d)
				}
			}
			r := rand.New(rand.NewPCG(2, 2))
			for range 100_000 {
				if d := r.Uint64(); has(d) != in[d] {
					t.Fatalf("%x is taken for another", d)
				}
			}
		})
	}
}

// What differs between the two rounds is found, and never written past its place.
func TestDigestsThatChangeBetweenTheRounds(t *testing.T) {
	for name, second := range map[string][]uint64{"fewer": {1, 2}, "more": {1, 2, 3, 3}, "none": {}} {
		round := 0
		_, _, _, ok := blocklist.Digests(1<<16, func(add func(uint64)) {
			values := []uint64{1, 2, 3}
			if round++; round == 2 {
				values = second
			}
			for _, d := range values {
				add(d)
			}
		})
		if ok {
			t.Errorf("%s: nothing was noticed", name)
		}
	}
}
