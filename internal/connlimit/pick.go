package connlimit

import (
	"container/heap"
	"slices"
)

// Kind says what a connection is doing, as far as it matters for who goes.
type Kind uint8

// The kinds, in no order.
const (
	Working    Kind = iota // on the server's side: never closed
	Leaving                // had its last answer, and lingers
	Idle                   // between two requests
	Unfinished             // waits for its client
)

// Candidate is a connection that is looked at.
type Candidate[C any] struct {
	Conn    C
	Kind    Kind
	Since   int64 // when that began; of an unfinished body later the faster it comes
	Network Network
	Weight  int32 // unfinished requests, at least 1
}

// Picker finds who goes. It looks at all, so one look should make room for many: Batch.
// It takes time in proportion to those it looks at, and the logarithm of that for each one
// that goes: with 20,000 connections a sort would keep new ones waiting for milliseconds.
// It belongs to one goroutine at a time, and keeps its memory.
type Picker[C any] struct {
	leaving, idle, unfinished queue[C]

	crowds  crowds[C]
	group   map[Network]int // index in crowds
	grouped []Candidate[C]  // the unfinished ones, by network
}

// queue is a heap of candidates, the slowest at the top.
type queue[C any] []Candidate[C]

func (q queue[C]) Len() int           { return len(q) }
func (q queue[C]) Less(i, j int) bool { return q[i].Since < q[j].Since }
func (q queue[C]) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue[C]) Push(any)          {} // for heap.Interface; nothing is pushed
func (q *queue[C]) Pop() any          { return nil }

// take removes the top and returns it.
func (q *queue[C]) take() Candidate[C] {
	all := *q
	last := len(all) - 1
	top := all[0]
	all[0] = all[last]
	*q = all[:last]
	if last > 0 {
		heap.Fix(q, 0)
	}
	return top
}

// crowd is what one network has unfinished.
type crowd[C any] struct {
	members queue[C]
	weight  int32
	size    int // of members, before they are there
}

// crowds is a heap of networks: who has most at the top, of equals who has the slowest.
type crowds[C any] []crowd[C]

func (q crowds[C]) Len() int { return len(q) }

func (q crowds[C]) Less(i, j int) bool {
	if a, b := q[i].weight, q[j].weight; a != b {
		return a > b
	}
	return q[i].members[0].Since < q[j].members[0].Since
}

func (q crowds[C]) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *crowds[C]) Push(any)     {} // for heap.Interface; nothing is pushed
func (q *crowds[C]) Pop() any     { return nil }

const (
	// batchShare is the part of the connections that goes at once.
	batchShare = 128
	// networkShare is the part of the connections that one network's unfinished requests may
	// take before they go earlier than idle connections do. Those of visitors last
	// milliseconds each, also behind a NAT.
	networkShare = 16
	// leastShare is for low limits: a browser opens six connections, some of them ahead of need.
	leastShare = 16
)

// Batch is how many of limit to close when there is no room.
func Batch(limit int) int { return 1 + limit/batchShare }

// Ahead is how many of limit are kept free by closing others before there is no room; 0 of a
// small limit.
func Ahead(limit int) int { return limit / batchShare }

// Add has the picker look at one more; who works is not kept.
func (p *Picker[C]) Add(c Candidate[C]) {
	switch c.Kind {
	case Leaving:
		p.leaving = append(p.leaving, c)
	case Idle:
		p.idle = append(p.idle, c)
	case Unfinished:
		c.Weight = max(c.Weight, 1)
		p.unfinished = append(p.unfinished, c)
	case Working:
	}
}

// Pick returns up to n of those that were added, who go first, and forgets all. limit is
// how many connections there may be.
func (p *Picker[C]) Pick(n, limit int) []C {
	defer p.forget()
	if len(p.leaving) > 0 {
		return slowest(&p.leaving, n)
	}
	p.sort()
	share := int32(max(limit/networkShare, min(leastShare, (limit+1)/2)))
	if found := p.fromLargest(n, share); len(found) > 0 {
		return found
	}
	if len(p.idle) > 0 {
		return slowest(&p.idle, n)
	}
	return p.fromLargest(n, 0)
}

// slowest takes up to n from q.
func slowest[C any](q *queue[C], n int) []C {
	heap.Init(q)
	var gone []C
	for len(gone) < n && len(*q) > 0 {
		gone = append(gone, q.take().Conn)
	}
	return gone
}

// sort puts the unfinished ones into crowds.
func (p *Picker[C]) sort() {
	if p.group == nil {
		p.group = map[Network]int{}
	}
	for i := range p.unfinished {
		c := &p.unfinished[i]
		at, known := p.group[c.Network]
		if !known {
			at = len(p.crowds)
			p.group[c.Network] = at
			p.crowds = append(p.crowds, crowd[C]{})
		}
		p.crowds[at].weight += c.Weight
		p.crowds[at].size++
	}
	p.grouped = slices.Grow(p.grouped, len(p.unfinished))[:len(p.unfinished)]
	free := p.grouped
	for i := range p.crowds {
		c := &p.crowds[i]
		c.members, free = queue[C](free[:0:c.size]), free[c.size:]
	}
	for _, c := range p.unfinished {
		at := p.group[c.Network]
		p.crowds[at].members = append(p.crowds[at].members, c)
	}
	for i := range p.crowds {
		heap.Init(&p.crowds[i].members)
	}
	heap.Init(&p.crowds)
}

// fromLargest takes up to n unfinished ones: the slowest of the network that has most, one by
// one, for as long as that has more than share.
func (p *Picker[C]) fromLargest(n int, share int32) []C {
	var gone []C
	for len(gone) < n && len(p.crowds) > 0 && p.crowds[0].weight > share {
		most := &p.crowds[0]
		c := most.members.take()
		gone = append(gone, c.Conn)
		most.weight -= c.Weight
		if len(most.members) == 0 {
			last := len(p.crowds) - 1
			p.crowds.Swap(0, last)
			p.crowds = p.crowds[:last]
		}
		if len(p.crowds) > 0 {
			heap.Fix(&p.crowds, 0)
		}
	}
	return gone
}

// forget leaves no connection in the memory that is kept.
func (p *Picker[C]) forget() {
	for _, q := range []*queue[C]{&p.leaving, &p.idle, &p.unfinished} {
		clear((*q)[:cap(*q)])
		*q = (*q)[:0]
	}
	clear(p.grouped)
	clear(p.crowds[:cap(p.crowds)])
	p.grouped, p.crowds = p.grouped[:0], p.crowds[:0]
	clear(p.group)
}
