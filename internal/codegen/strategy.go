package codegen

import (
	"context"
	"fmt"
	"sync/atomic"

	"curt/internal/link"
)

// placeShift leaves 60 bits of a place for the id, which hold 62^10, and puts each length of
// codes into a range of places of its own.
const placeShift = 60

// Position returns where in a store a code lies, so that codes that are created one after the other
// are stored one after the other: by length and by id. ok is false of a code that the permutation
// cannot issue.
func (p *Permutation) Position(code link.Code) (place int64, ok bool) {
	id, ok := p.ID(code)
	return FirstPosition(len(code)) | int64(id), ok
}

// FirstPosition returns the place of the first id of a length.
func FirstPosition(length int) int64 { return int64(length-MinLength) << placeShift }

// IDAt returns the id and the length whose place this is; ok is false where none has it.
func IDAt(place int64) (id uint64, length int, ok bool) {
	length = int(place>>placeShift) + MinLength
	return uint64(place) & (1<<placeShift - 1), length, place >= 0 && length <= MaxLength
}

// Strategy tells which codes were certainly never issued by it, so that somebody who tries
// codes at random costs no query.
type Strategy interface {
	// Perhaps reports whether the strategy may have issued the code by now, in any process. It
	// asks nobody, and stays true once it is.
	Perhaps(code link.Code) bool

	// Refresh reads how far all processes together have got. Perhaps is right for a minute after
	// it, whatever they issue meanwhile.
	Refresh(ctx context.Context) error
}

// margin is how far above the mark an id must lie to count as not leased: far more than all
// processes lease between two readings, and than a restore skips (10 million). To lease it
// within a minute would take 1.6 million codes a second.
const margin = 100_000_000

// Counts is the Strategy of link.Counted codes: those beyond all leases were never issued. It
// is safe for many goroutines.
type Counts struct {
	ids   IDs
	mark  Mark
	marks [MaxLength + 1]atomic.Uint64 // by length of code
}

// IDs finds the id that a code was made from; Permutation is one.
type IDs interface {
	ID(code link.Code) (id uint64, ok bool)
}

// Mark returns the lowest id that was never leased for codes of a length.
type Mark func(ctx context.Context, length int) (uint64, error)

// NewCounts returns a Strategy that has read no mark yet.
func NewCounts(ids IDs, mark Mark) *Counts { return &Counts{ids: ids, mark: mark} }

// Perhaps implements Strategy.
func (c *Counts) Perhaps(code link.Code) bool {
	id, ok := c.ids.ID(code)
	return ok && id < c.marks[len(code)].Load()+margin
}

// Refresh implements Strategy.
func (c *Counts) Refresh(ctx context.Context) error {
	for length := MinLength; length <= MaxLength; length++ {
		mark, err := c.mark(ctx, length)
		if err != nil {
			return fmt.Errorf("read the mark of length %d: %w", length, err)
		}
		// Marks that went down (a restore under our feet) would rule out what exists.
		if mark > c.marks[length].Load() {
			c.marks[length].Store(mark)
		}
	}
	return nil
}
