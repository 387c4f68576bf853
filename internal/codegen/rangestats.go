package codegen

import "sync/atomic"

// RangeStats are totals since the Range was made, but for Left.
type RangeStats struct {
	Leases   uint64 // ranges got from the Leaser
	Inline   uint64 // of them, those that a caller of Next had to wait for
	Failures uint64 // leases that the Leaser refused
	Burned   uint64 // codes that were taken against the promise: an alarm
	Left     uint64 // ids left in the range at hand
}

type rangeCounters struct {
	leases, inline, failures, burned atomic.Uint64
}

// Stats returns the totals. Each is exact; together they are not one moment.
func (r *Range) Stats() RangeStats {
	s := RangeStats{
		Leases:   r.stats.leases.Load(),
		Inline:   r.stats.inline.Load(),
		Failures: r.stats.failures.Load(),
		Burned:   r.stats.burned.Load(),
	}
	if l := r.current.Load(); l != nil {
		s.Left = l.left()
	}
	return s
}
