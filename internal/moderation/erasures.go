package moderation

import (
	"fmt"
	"maps"
	"slices"
)

// erasedText is how the reason of an ActionErase begins: it names the entry.
const erasedText = "entry %d: "

// erasures tells texts that were erased from those that somebody took away behind the
// journal's back: an erasure has an entry of its own. It remembers those it waits for.
type erasures struct {
	gone map[uint64]Entity   // entries without their texts, by number
	some map[Entity][]uint64 // erasures that do not say, or no longer, what they erased; in order
}

func newErasures() *erasures {
	return &erasures{gone: map[uint64]Entity{}, some: map[Entity][]uint64{}}
}

// take takes the next entry of the journal.
func (s *erasures) take(e *Entry) {
	if e.Reason.Erased || e.Evidence.Erased {
		s.gone[e.Sequence] = e.Entity
	}
	if e.Action != ActionErase {
		return
	}
	var of uint64
	if _, err := fmt.Sscanf(e.Reason.Body, erasedText, &of); err != nil {
		s.some[e.Entity] = append(s.some[e.Entity], e.Sequence)
	} else if s.gone[of] == e.Entity && of < e.Sequence {
		delete(s.gone, of)
	}
}

// unexplained returns the first entry whose texts are gone and that no later erasure can
// have meant.
func (s *erasures) unexplained() (first uint64, found bool) {
	for _, sequence := range slices.Backward(slices.Sorted(maps.Keys(s.gone))) {
		of := s.gone[sequence]
		if some := s.some[of]; len(some) > 0 && some[len(some)-1] > sequence {
			s.some[of] = some[:len(some)-1]
			continue
		}
		first, found = sequence, true
	}
	return first, found
}
