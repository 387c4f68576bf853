package fill

import (
	"math/rand/v2"

	"curt/internal/link"
)

// Order draws links uniformly at random, none twice: each look-up of a drawn code
// misses every cache inside a server that started after the Order was made. It
// takes 4 bytes for each link.
type Order struct {
	links *Links
	order []uint32
	next  int
}

// NewOrder shuffles the links.
func NewOrder(l *Links, seed uint64) *Order {
	o := &Order{links: l, order: make([]uint32, l.Count())}
	for i := range o.order {
		o.order[i] = uint32(i)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	r.Shuffle(len(o.order), func(i, j int) { o.order[i], o.order[j] = o.order[j], o.order[i] })
	return o
}

// Left returns how many links were not drawn yet.
func (o *Order) Left() int { return len(o.order) - o.next }

// Next returns a code that was not drawn before. It panics when none is Left.
func (o *Order) Next() link.Code {
	o.next++
	return o.links.Code(int(o.order[o.next-1]))
}
