package traffic

import "math/rand/v2"

// Zipf draws ranks 0 to n-1, rank k with a probability in proportion to
// 1/(k+1): Zipf's law with exponent 1.0, which math/rand cannot draw (its
// exponent must be above 1). It never changes and is safe for many goroutines.
type Zipf struct {
	below []float64 // below[k] is the probability of a rank <= k; the last is 1
	guide []uint32  // guide[j] is the lowest rank with below > j/len(guide)
}

// NewZipf returns the law over n ranks; it panics unless n > 0. It takes 12 bytes
// for each.
func NewZipf(n int) *Zipf {
	if n <= 0 {
		panic("traffic: Zipf over no ranks")
	}
	z := &Zipf{below: make([]float64, n), guide: make([]uint32, n)}
	sum := 0.0
	for k := range n {
		sum += 1 / float64(k+1)
		z.below[k] = sum
	}
	for k := range n {
		z.below[k] /= sum
	}
	z.below[n-1] = 1
	rank := uint32(0)
	for j := range z.guide {
		for z.below[rank] <= float64(j)/float64(n) {
			rank++
		}
		z.guide[j] = rank
	}
	return z
}

// Rank draws one rank. It inverts the distribution: the guide table gives the
// rank of the next lower of n equal steps, from which the walk is 2 ranks long
// on average.
func (z *Zipf) Rank(r *rand.Rand) int {
	u := r.Float64() // below 1
	k := int(z.guide[int(u*float64(len(z.guide)))])
	for z.below[k] <= u {
		k++
	}
	return k
}

// Share returns the probability of a rank.
func (z *Zipf) Share(rank int) float64 {
	if rank == 0 {
		return z.below[0]
	}
	return z.below[rank] - z.below[rank-1]
}
