package clicks

import (
	"cmp"
	"fmt"
)

// Position is a place in the click log: an offset in a segment. Positions grow as
// the log does; the zero Position is before everything.
type Position struct {
	Segment uint64
	Offset  int64
}

// Compare orders positions as cmp.Compare does.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Segment, q.Segment), cmp.Compare(p.Offset, q.Offset))
}

func (p Position) String() string { return fmt.Sprintf("%s+%d", segmentName(p.Segment), p.Offset) }
