package cache

import (
	"sync/atomic"
	"time"
)

// counters count what is off the path of a hit: a hit writes to no shared memory of
// ours.
type counters struct {
	loads, failures, joined, stale, never, refreshes, crowded, changes atomic.Uint64

	failed                                             atomic.Int64 // Unix milliseconds; 0 = never
	sharedHits, sharedMisses, sharedOld, sharedCrowded atomic.Uint64
	notes, gaps                                        atomic.Uint64
}

// Stats are totals since New, and the present size.
type Stats struct {
	Loads    uint64 // questions to the source
	Failures uint64 // loads that ended without an answer

	Failed        time.Time // the last of these; zero = none
	Joined        uint64    // look-ups that waited for another's load
	Stale         uint64    // look-ups answered from an entry that was due, because the source failed
	Never         uint64    // look-ups of codes that were never issued
	Refreshes     uint64    // loads in the background
	Crowded       uint64    // refreshes put off because too many were due
	Changes       uint64    // changes announced
	SharedHits    uint64    // loads answered by L2
	SharedMisses  uint64    // loads that L2 had no answer for, or did not give in time
	SharedOld     uint64    // answers of L2 that the change log did not vouch for
	SharedCrowded uint64    // entries not put into L2 because too many waited
	Notes         uint64    // heard on the bus, heartbeats included
	Gaps          uint64    // notes that the change log had to be read for
	Entries       int       // in L1
	Bytes         uint64    // of Config.Bytes
	Chosen        int       // codes in the filter of Issued
}

// Stats reads the counters; each is exact, together they are of no one moment.
func (c *Tiered) Stats() Stats {
	s := Stats{
		Loads: c.counts.loads.Load(), Failures: c.counts.failures.Load(), Joined: c.counts.joined.Load(),
		Stale: c.counts.stale.Load(), Never: c.counts.never.Load(), Refreshes: c.counts.refreshes.Load(),
		Crowded: c.counts.crowded.Load(), Changes: c.counts.changes.Load(),
		SharedHits: c.counts.sharedHits.Load(), SharedMisses: c.counts.sharedMisses.Load(),
		SharedOld: c.counts.sharedOld.Load(), SharedCrowded: c.counts.sharedCrowded.Load(),
		Notes: c.counts.notes.Load(), Gaps: c.counts.gaps.Load(),
		Entries: c.l1.EstimatedSize(), Bytes: c.l1.WeightedSize(),
	}
	if c.cfg.Issued != nil {
		s.Chosen = c.cfg.Issued.others.len()
	}
	if ms := c.counts.failed.Load(); ms != 0 {
		s.Failed = time.UnixMilli(ms).UTC()
	}
	return s
}
