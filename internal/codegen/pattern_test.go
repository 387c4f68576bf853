package codegen_test

import (
	"math"
	"testing"

	"curt/internal/codegen"
	"curt/internal/testkit"
)

// A million consecutive ids, as an outsider who makes links would see them. The
// bounds are those that a truly random sequence passes all but once in a million
// runs; the key is fixed, so the test always says the same.
const (
	samples = 1_000_000

	// chiBound is the 1 - 1e-6 quantile of chi-squared with 61 degrees of freedom
	// (128.8 by Wilson and Hilferty). Counting which of 62 digits comes how often
	// has 61, mean 61, deviation 11.
	chiBound = 129

	// sigmaBound is the two-sided 1 - 1e-6 quantile of the normal distribution.
	sigmaBound = 4.9
)

// findings are what the tests of pattern make of a sequence of codes.
type findings struct {
	digits      [7]float64 // chi-squared of the digits at each position
	differences [7]float64 // chi-squared of (digit - digit of the neighbour) mod 62
	ascents     float64    // deviations of the number of code(i) < code(i+1) from half
	correlation float64    // deviations of the correlation of neighbours from 0
}

func inspect(apply func(id uint64) uint64) findings {
	var digits, differences [7][62]int
	ascents, product := 0, 0.0
	size := float64(codegen.Space(7))
	last := apply(0)
	for id := uint64(1); id <= samples; id++ {
		v := apply(id)
		if v > last {
			ascents++
		}
		product += (float64(v)/size - 0.5) * (float64(last)/size - 0.5)
		for i, a, b := 6, v, last; i >= 0; i, a, b = i-1, a/62, b/62 {
			digits[i][a%62]++
			differences[i][(a%62+62-b%62)%62]++
		}
		last = v
	}
	f := findings{
		ascents:     (float64(ascents) - samples/2) / math.Sqrt((samples+1)/12.0),
		correlation: product * 12 / math.Sqrt(samples),
	}
	for i := range digits {
		f.digits[i] = chiSquared(digits[i][:])
		f.differences[i] = chiSquared(differences[i][:])
	}
	return f
}

func chiSquared(counts []int) float64 {
	expected, sum := float64(samples)/float64(len(counts)), 0.0
	for _, n := range counts {
		d := float64(n) - expected
		sum += d * d / expected
	}
	return sum
}

// patterns counts what is over its bound.
func (f findings) patterns() (n int) {
	for i := range f.digits {
		if f.digits[i] > chiBound {
			n++
		}
		if f.differences[i] > chiBound {
			n++
		}
	}
	for _, s := range []float64{f.ascents, f.correlation} {
		if math.Abs(s) > sigmaBound {
			n++
		}
	}
	return n
}

// TestNeighboursShareNoPattern also takes ids whose lower half is the same: those
// are where a network of too few rounds shows first.
func TestNeighboursShareNoPattern(t *testing.T) {
	testkit.Unraced(t)
	p := codegen.NewPermutation(testKey)
	for _, stride := range []uint64{1, 1 << 21} {
		f := inspect(func(id uint64) uint64 { return p.Apply(7, id*stride) })
		t.Logf("stride %d: %+v", stride, f)
		if n := f.patterns(); n != 0 {
			t.Errorf("%d of 16 tests find a pattern in stride %d: %+v", n, stride, f)
		}
	}
}

// TestPatternsAreFound is the control: what has been sold as unguessable elsewhere
// fails the same tests by far.
func TestPatternsAreFound(t *testing.T) {
	size := codegen.Space(7)
	for name, c := range map[string]struct {
		apply   func(id uint64) uint64
		atLeast int // tests that must find a pattern
	}{
		"counting":          {func(id uint64) uint64 { return id }, 10},
		"affine map":        {func(id uint64) uint64 { return (id*1_999_993 + 777_777) % size }, 7},
		"multiplied by odd": {func(id uint64) uint64 { return id * 2_654_435_761 % size }, 7},
	} {
		t.Run(name, func(t *testing.T) {
			f := inspect(c.apply)
			t.Logf("%+v", f)
			if n := f.patterns(); n < c.atLeast {
				t.Errorf("only %d of 16 tests find a pattern, want %d: %+v", n, c.atLeast, f)
			}
		})
	}
}
