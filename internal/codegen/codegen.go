package codegen

import (
	"context"
	"errors"

	"curt/internal/link"
)

// Bounds of a generated code's length. 62^10 is the largest space whose ids fit
// 60 bits, which leaves a store 3 bits for the length.
const (
	MinLength = 4
	MaxLength = 10
)

// Guarantee says what a Generator's codes are worth.
type Guarantee uint8

const (
	// Likely codes may be taken: the caller inserts conditionally and asks again.
	Likely Guarantee = iota + 1
	// Unique codes are never made twice. Callers insert conditionally all the same
	// (an alias may have the code's shape, a restore may hand a lease out again)
	// and report a collision by Burned.
	Unique
)

// Need is what the code is for.
type Need struct {
	Domain      link.Domain
	Workspace   link.WorkspaceID
	Destination string
	Attempt     int // 0 at first, +1 after each code that this link could not have

	// Unseen says that FirstChecker.Unseen was true of this need a moment ago, so that Next need not ask again.
	Unseen bool
}

// FirstChecker is a Generator whose first code for a need says whether the destination has a link.
type FirstChecker interface {
	// Unseen reports that no link is known to have the first code: a look-up of the destination would
	// find nothing but links whose codes were generated in another way.
	Unseen(ctx context.Context, need Need) bool
}

// Generator makes codes. It is safe for many goroutines.
type Generator interface {
	// Next returns a code for the need. It wraps link.ErrUnavailable when none can
	// be made now and ErrExhausted when none is left.
	Next(ctx context.Context, need Need) (link.Code, error)

	// Guarantee says whether Next may repeat itself.
	Guarantee() Guarantee

	// Kind is that of the codes.
	Kind() link.CodeKind

	// Burned tells the Generator that a code it promised Unique was taken. It drops
	// the rest of the range that the code came from.
	Burned(code link.Code)
}

// Leaser hands out ranges of ids. Ranges of one counter never overlap, whoever
// asks, in any process, before or after any crash; ids may be lost.
type Leaser interface {
	// Lease returns the first of n consecutive ids that belong to the caller for
	// ever. It wraps link.ErrUnavailable when the counter cannot be asked.
	Lease(ctx context.Context, counter string, n uint64) (first uint64, err error)

	// Leased returns the lowest id that was never leased: everything below belongs
	// to somebody.
	Leased(ctx context.Context, counter string) (uint64, error)

	// Skip raises the counter by n without handing the ids to anybody, for a store
	// whose leases may be older than its links.
	Skip(ctx context.Context, counter string, n uint64) error

	// Raise moves the counter from a mark to a higher one: the ids between belong to the caller for ever.
	// link.ErrConflict when the mark is another by now, link.ErrInvalid when to is none above from. After an
	// error that leaves open whether it happened, the next call may return link.ErrConflict.
	Raise(ctx context.Context, counter string, from, to uint64) error
}

// ErrExhausted says that the code space of this length holds no further code.
var ErrExhausted = errors.New("all codes of this length are used")
