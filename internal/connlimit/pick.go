package connlimit

import (
	"cmp"
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
	held    int32 // unfinished requests of its network that are not slower, its own included
}

// Picker finds who goes. It looks at all, so one look should make room for many: Batch.
// It belongs to one goroutine at a time, and keeps its memory.
type Picker[C any] struct {
	all  []Candidate[C]
	held map[Network]int32
}

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

// Add has the picker look at one more; who works is not kept.
func (p *Picker[C]) Add(c Candidate[C]) {
	if c.Kind != Working {
		p.all = append(p.all, c)
	}
}

// Pick returns up to n of those that were added, who go first, and forgets all. limit is
// how many connections there may be.
func (p *Picker[C]) Pick(n, limit int) []C {
	defer p.forget()
	slices.SortFunc(p.all, func(a, b Candidate[C]) int { return cmp.Compare(b.Since, a.Since) }) // the slowest last
	if p.held == nil {
		p.held = map[Network]int32{}
	}
	for i := range p.all {
		if c := &p.all[i]; c.Kind == Unfinished {
			c.held = p.held[c.Network] + max(c.Weight, 1)
			p.held[c.Network] = c.held
		}
	}
	share := int32(max(limit/networkShare, min(leastShare, (limit+1)/2)))
	for _, wanted := range []func(*Candidate[C]) bool{
		func(c *Candidate[C]) bool { return c.Kind == Leaving },
		func(c *Candidate[C]) bool { return c.Kind == Unfinished && c.held > share },
		func(c *Candidate[C]) bool { return c.Kind == Idle },
		func(c *Candidate[C]) bool { return c.Kind == Unfinished },
	} {
		if found := p.first(n, wanted); len(found) > 0 {
			return found
		}
	}
	return nil
}

// first returns up to n that are wanted: those whose network holds most at first, as if
// it lost them one by one, then the slowest.
func (p *Picker[C]) first(n int, wanted func(*Candidate[C]) bool) []C {
	var found []*Candidate[C]
	for i := range p.all {
		if c := &p.all[len(p.all)-1-i]; wanted(c) {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b *Candidate[C]) int { return cmp.Compare(b.held, a.held) })
	var gone []C
	for _, c := range found[:min(n, len(found))] {
		gone = append(gone, c.Conn)
	}
	return gone
}

func (p *Picker[C]) forget() {
	clear(p.all) // or who left stays in memory
	p.all = p.all[:0]
	clear(p.held)
}
