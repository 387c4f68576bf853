package cache

import (
	"sync/atomic"

	"curt/internal/cache/issued"
	"curt/internal/link"
)

// changes applies changes to this process, whichever way they arrive: its own writes, notes
// of the bus, the change log.
//
// Invariant: when a change was applied, the filter of issued codes has its code, recent knows
// its version, and L1 neither has nor admits less. L1 is last: a load that begins after that
// step finds the other two done, and one that began before it is held by its floor.
type changes struct {
	l1     *l1
	recent *recent
	issued *issued.Codes         // nil = none
	listen func(c []link.Change) // nil = none
	count  atomic.Uint64
}

// apply takes changes in and passes them to the listener.
func (c *changes) apply(all []link.Change) {
	for _, ch := range all {
		c.one(ch.Key, ch.Version)
	}
	if c.listen != nil && len(all) > 0 {
		c.listen(all)
	}
}

func (c *changes) one(k link.Key, v link.Version) {
	c.count.Add(1)
	switch {
	case c.issued == nil:
	case v == 1: // counted links are created without a change
		c.issued.Created(k.Code)
	default:
		c.issued.Add(k.Code)
	}
	h := c.l1.hash.Of(k.Domain, k.Code)
	c.recent.heard(h, v)
	c.l1.changed(h, k, v)
}

// missed is for changes that are not known one by one: L1 starts empty.
func (c *changes) missed() {
	c.l1.dropAll()
	if c.listen != nil {
		c.listen(nil)
	}
}
