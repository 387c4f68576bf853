package cache

import "sync/atomic"

// counters count what is off the path of a hit: a hit writes to no shared memory of
// ours.
type counters struct {
	loads, failures, joined, stale, never, refreshes, crowded, changes atomic.Uint64
}

// Stats are totals since New, and the present size.
type Stats struct {
	Loads     uint64 // questions to the source
	Failures  uint64 // loads that ended without an answer
	Joined    uint64 // look-ups that waited for another's load
	Stale     uint64 // look-ups answered from an entry that was due, because the source failed
	Never     uint64 // look-ups of codes that were never issued
	Refreshes uint64 // loads in the background
	Crowded   uint64 // refreshes put off because too many were due
	Changes   uint64 // changes announced
	Entries   int    // in L1
	Bytes     uint64 // of Config.Bytes
	Unminted  int    // codes in the filter of Issued
}

// Stats reads the counters; each is exact, together they are of no one moment.
func (c *Tiered) Stats() Stats {
	s := Stats{
		Loads: c.counts.loads.Load(), Failures: c.counts.failures.Load(), Joined: c.counts.joined.Load(),
		Stale: c.counts.stale.Load(), Never: c.counts.never.Load(), Refreshes: c.counts.refreshes.Load(),
		Crowded: c.counts.crowded.Load(), Changes: c.counts.changes.Load(),
		Entries: c.l1.EstimatedSize(), Bytes: c.l1.WeightedSize(),
	}
	if c.cfg.Issued != nil {
		s.Unminted = c.cfg.Issued.others.len()
	}
	return s
}
