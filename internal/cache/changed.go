package cache

import (
	"curt/internal/link"
)

// Changed makes every answer below the changes' versions impossible: once it
// returned, no look-up that begins is answered with less, and no load that began
// before brings less into L1. A created key is a change too: it ends a cached
// "unknown". For Config.Lag after it the key is read by Get.
func (c *Tiered) Changed(changes ...link.Change) {
	for _, ch := range changes {
		c.changed(ch.Key, ch.Version)
	}
	if c.cfg.Heard != nil && len(changes) > 0 {
		c.cfg.Heard(changes)
	}
}

// Announce is Changed for what this process has just written: it also has the other
// processes told, soon and without waiting. Where too much waits already, they hear of it
// from the change log.
func (c *Tiered) Announce(changes ...link.Change) {
	c.Changed(changes...)
	if !c.cfg.Shared {
		return
	}
	for _, ch := range changes {
		select {
		case c.outbox <- ch:
		default:
		}
	}
	c.poke()
}

// poke has the change log read soon.
func (c *Tiered) poke() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

func (c *Tiered) changed(k link.Key, v link.Version) {
	c.counts.changes.Add(1)
	switch {
	case c.cfg.Issued == nil:
	case v == 1: // counted links are created without a change
		c.cfg.Issued.Created(k.Code)
	default:
		c.cfg.Issued.Add(k.Code)
	}
	h := c.hashString(k.Domain, k.Code)
	c.recent.heard(h, v)
	s := c.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.cfg.Lag > 0 {
		now := c.clock()
		s.floors.raise(k, v, now, now+int64(c.cfg.Lag))
	}
	c.outdate(s, h, k, v)
}

// Created ends a cached "unknown" of a code that the permutation made a moment ago:
// somebody may have tried the code before it was given away. Such creates are not
// in the change log, so other processes may go on for Config.Missing; the chance
// that a code was tried in that time is the reason why they are spared the traffic.
func (c *Tiered) Created(k link.Key) {
	h := c.hashString(k.Domain, k.Code)
	s := c.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.outdate(s, h, k, 1)
}

// outdate makes what L1 and a load under way hold below v unusable. The caller
// holds s.mu.
func (c *Tiered) outdate(s *shard, h uint64, k link.Key, v link.Version) {
	if f := s.flights[k]; f != nil {
		f.floor = max(f.floor, v)
	}
	if e := c.peek(h, k); e != nil && e.Target.Version < v {
		c.l1.Invalidate(h)
	}
}

// DropAll forgets everything, for when changes were missed and nobody knows which:
// loads under way are repeated, and for Config.Lag every key is read by Get.
func (c *Tiered) DropAll() {
	for i := range c.shards {
		c.shards[i].mu.Lock()
	}
	c.primaryUntil.Store(c.clock() + int64(c.cfg.Lag))
	for i := range c.shards {
		for _, f := range c.shards[i].flights {
			f.void = true
		}
	}
	c.l1.InvalidateAll()
	for i := range c.shards {
		c.shards[i].mu.Unlock()
	}
	if c.cfg.Heard != nil {
		c.cfg.Heard(nil)
	}
}

// floors are the versions below which keys must not be answered, for as long as a
// replica may still hold less. All floors last equally long, so they end in the
// order in which they began, and raise itself clears away the old ones.
type floors struct {
	byKey map[link.Key]floor
	order []expiring
}

type floor struct {
	version link.Version
	until   int64
}

type expiring struct {
	key   link.Key
	until int64
}

// raise sets the floor of k to at least v until the given time.
func (f *floors) raise(k link.Key, v link.Version, now, until int64) {
	f.clear(now)
	if f.byKey == nil {
		f.byKey = map[link.Key]floor{}
	}
	f.byKey[k] = floor{version: max(v, f.byKey[k].version), until: until}
	f.order = append(f.order, expiring{k, until})
}

// of returns the floor of k; 0 = none.
func (f *floors) of(k link.Key, now int64) link.Version {
	if e, ok := f.byKey[k]; ok && now < e.until {
		return e.version
	}
	return 0
}

// clear drops what ended before now.
func (f *floors) clear(now int64) {
	n := 0
	for n < len(f.order) && f.order[n].until <= now {
		// A key that was raised again since has a later end, and a later place.
		if k := f.order[n].key; f.byKey[k].until <= now {
			delete(f.byKey, k)
		}
		n++
	}
	if n == len(f.order) {
		f.order = nil
	} else {
		f.order = f.order[n:]
	}
}
