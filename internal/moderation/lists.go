package moderation

import (
	"context"
	"errors"
)

// Lists keeps the lines of lists beside the journal. It is safe for many goroutines and processes;
// its errors are those of Journal and ErrListsFull.
type Lists interface {
	// Change puts lines into their lists, or removes them, together with the journal entries that
	// say so, all or none, in one durable write. Entries that change nothing, of a line that is
	// listed already or is not listed, are left out; the others are returned as Append does. An
	// entry of another action is ErrInvalid. ErrListsFull when a list would be too long.
	Change(ctx context.Context, entries ...Entry) ([]Entry, error)

	// Lines returns up to n lines of a kind behind a name, in the order of their bytes, each as
	// the entry that listed it: an erased reason is missing there too. Stores have a bound of n.
	Lines(ctx context.Context, kind Kind, after string, n int) ([]Entry, error)

	// Load returns every line with the number of its entry, and the number of an entry up to which
	// the lines are complete. Entries behind that one may be in the lines.
	Load(ctx context.Context) (lines map[Entity]uint64, complete uint64, err error)
}

// Bounds of lists. A look-alike takes some 2 KB of memory, every other line about 100 bytes.
const (
	MaxListLines  = 100_000 // of all lists together
	MaxLookAlikes = 5_000
)

// ErrListsFull means that a list would have too many lines.
var ErrListsFull = errors.New("too many lines")

// ListKinds are the kinds of entities that are lines of a list.
func ListKinds() []Kind { return []Kind{KindRefusedWord, KindLookAlike, KindAllowedDestination} }
