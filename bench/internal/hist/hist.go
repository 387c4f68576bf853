// Package hist counts durations in fixed memory, so that a load generator may
// record every one of millions of requests instead of a sample.
//
// The buckets are log-linear: 256 to each power of two, so a quantile is at most
// 1/256 (0.4 %) above the true one, and never below it. Everything under 256 ns
// is exact. The package imports only the standard library.
package hist

import (
	"math"
	"math/bits"
	"time"
)

const (
	subBits = 8
	sub     = 1 << subBits

	// maxBits bounds what is told apart: 2^40 ns are 18 minutes, longer than any
	// run. What is longer counts as that; Max still says what it was.
	maxBits = 40
	buckets = sub * (maxBits - subBits + 1)
)

// Histogram counts durations. The zero Histogram is empty and ready. It is not
// safe for concurrent use: each recording goroutine has its own, and Merge adds
// them up.
type Histogram struct {
	counts [buckets]uint64
	n      uint64
	max    time.Duration
}

// Record counts one duration; a negative one counts as zero.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.counts[index(uint64(d))]++
	h.n++
	h.max = max(h.max, d)
}

// index returns the bucket of v nanoseconds.
func index(v uint64) int {
	v = min(v, 1<<maxBits-1)
	if v < sub {
		return int(v)
	}
	shift := bits.Len64(v) - subBits - 1
	return shift*sub + int(v>>shift)
}

// highest returns the largest value that bucket i counts.
func highest(i int) time.Duration {
	if i < 2*sub {
		return time.Duration(i)
	}
	shift := i/sub - 1
	return time.Duration((i%sub+sub+1)<<shift - 1)
}

// Merge adds the counts of o.
func (h *Histogram) Merge(o *Histogram) {
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

// Count returns how many durations were recorded.
func (h *Histogram) Count() uint64 { return h.n }

// Max returns the longest duration, exactly.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile returns a duration that at least the share q of all is not longer than
// (nearest rank, so p99 of 100 durations is the 99th), rounded up by 0.4 % at
// most; 0 when nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	// The product may come out a hair above a whole number that it should be.
	rank := uint64(math.Ceil(q*float64(h.n) - 1e-6))
	rank = min(max(rank, 1), h.n)
	var seen uint64
	for i, c := range h.counts {
		if seen += c; seen >= rank {
			return min(highest(i), h.max)
		}
	}
	return h.max
}
