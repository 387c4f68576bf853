package lane

import "sync/atomic"

type counters struct {
	accepted, handed, returned, refused, evicted, late, panics atomic.Uint64
}

// Stats are counters since the start. Hits are not counted: each is a click.
type Stats struct {
	Open     int    // connections in the lane, those that take leave included
	Foreign  int    // connections at net/http
	Accepted uint64 // connections
	Handed   uint64 // given to net/http
	Returned uint64 // of them taken back
	Refused  uint64 // not taken: no descriptors, or as many as MaxConns allows and all worked for
	Evicted  uint64 // closed to make room
	Late     uint64 // closed by the sweeper: too slow, or idle for too long
	Panics   uint64 // answers that failed by a fault of ours; always 0
}

// Stats returns the counters.
func (l *Lane) Stats() Stats {
	open, foreign := l.conns.count()
	return Stats{
		Open: open, Foreign: foreign,
		Accepted: l.stats.accepted.Load(), Handed: l.stats.handed.Load(), Returned: l.stats.returned.Load(), Refused: l.stats.refused.Load(),
		Evicted: l.stats.evicted.Load(), Late: l.stats.late.Load(), Panics: l.stats.panics.Load(),
	}
}
