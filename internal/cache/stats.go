package cache

import "time"

// Stats are totals since New, and the present size.
type Stats struct {
	Loads    uint64 // questions to the source
	Failures uint64 // loads that ended without an answer

	Failed        time.Time // the last of these; zero = none
	Joined        uint64    // look-ups that waited for another's load
	Stale         uint64    // look-ups answered from an entry that was due, because the source failed
	Never         uint64    // look-ups of codes that were never issued
	Refreshes     uint64    // loads in the background
	Deferred      uint64    // refreshes put off because too many were due
	Changes       uint64    // changes announced
	SharedHits    uint64    // loads answered by L2
	SharedMisses  uint64    // loads that L2 had no answer for, or did not give in time
	SharedOld     uint64    // answers of L2 that the change log did not vouch for
	SharedDropped uint64    // entries not put into L2 because too many waited
	Notes         uint64    // heard on the bus, heartbeats included
	Gaps          uint64    // notes that the change log had to be read for
	Entries       int       // in L1
	Bytes         uint64    // of Config.Bytes
	Chosen        int       // codes in the filter of Issued
}

// Stats reads the counters; each is exact, together they are of no one moment. All of them
// count off the path of a hit: a hit writes to no shared memory of ours.
func (c *Tiered) Stats() Stats {
	l, second, notes := &c.loader, &c.l2, &c.notes
	s := Stats{
		Loads: l.loads.Load(), Failures: l.failures.Load(), Joined: l.joined.Load(), Stale: l.stale.Load(), Never: c.never.Load(),
		Refreshes: l.refreshes.Load(), Deferred: l.crowded.Load(), Changes: c.changes.count.Load(), SharedHits: second.hits.Load(),
		SharedMisses: second.misses.Load(), SharedOld: second.old.Load(), SharedDropped: second.crowded.Load(),
		Notes: notes.count.Load(), Gaps: notes.gaps.Load(), Entries: c.l1.entries.EstimatedSize(), Bytes: c.l1.entries.WeightedSize(),
	}
	if c.issued != nil {
		s.Chosen = c.issued.Len()
	}
	if ms := l.lastFailure.Load(); ms != 0 {
		s.Failed = time.UnixMilli(ms).UTC()
	}
	return s
}
