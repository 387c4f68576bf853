package clicks

import (
	"net/netip"
	"time"
)

// What the head of a block says of the addresses of its clicks, so that a proxy whose
// visitors all seem to be one is noticed and no address has to be kept.
const (
	oneAddress  uint32 = 1 << 0 // all of its clicks came from one
	sameAddress uint32 = 1 << 1 // and so did those of the instance's block before
)

// origin follows the addresses of the clicks that Capture puts into blocks.
type origin struct {
	addr    netip.Addr // of the clicks of the block so far
	several bool       // they came from others, too
	before  netip.Addr // of all clicks of the block before; invalid = of several, or there is none
}

// begin starts a block.
func (o *origin) begin() { o.addr, o.several = netip.Addr{}, false }

// see notes where a click of the block came from; what is unknown may be anywhere.
func (o *origin) see(a netip.Addr) {
	if !o.addr.IsValid() {
		o.addr = a
	}
	o.several = o.several || !a.IsValid() || a.IsUnspecified() || a != o.addr
}

// flags is what the head of the block says.
func (o *origin) flags() uint32 {
	switch {
	case o.several || !o.addr.IsValid():
		return 0
	case o.addr == o.before:
		return oneAddress | sameAddress
	default:
		return oneAddress
	}
}

// written ends a block that is in the log.
func (o *origin) written() {
	o.before = o.addr
	if o.several {
		o.before = netip.Addr{}
	}
}

// Alone are the newest clicks of a log, back to the first that came from another address
// than they did. Of two lives of a server nobody knows whether their addresses differ:
// they are taken for one.
type Alone struct {
	Clicks uint64
	Agents int // distinct user agents among them on one day, counted up to MostAgents
	Since  time.Time
}

// MostAgents is how many user agents of Alone are counted: far more than one person has.
const MostAgents = 20

// aloneCounter follows a log's blocks to its end.
type aloneCounter struct {
	now      Alone
	instance uint64
	day      int64
	agents   map[uint64]bool // of the day, by the tags of visitors
}

func (a *aloneCounter) block(b *Block) {
	goes := b.origin&sameAddress != 0 || b.origin&oneAddress != 0 && b.First.Instance != a.instance
	a.instance = b.First.Instance
	if !goes || a.now.Clicks == 0 {
		a.now, a.agents = Alone{Since: time.UnixMilli(b.Earliest).UTC()}, map[uint64]bool{}
	}
	if b.origin&oneAddress != 0 {
		a.now.Clicks += uint64(b.Count)
	}
}

// event counts visitors: on one day and from one address they are user agents, and what is
// kept of those tells few apart. Without the day's key there are none.
func (a *aloneCounter) event(e *Event) {
	if a.now.Clicks == 0 || e.Visitor == 0 || a.now.Agents >= MostAgents {
		return
	}
	if day := e.Time / dayMillis; day != a.day {
		a.day, a.agents = day, map[uint64]bool{}
	}
	a.agents[e.Visitor] = true
	a.now.Agents = max(a.now.Agents, len(a.agents))
}
