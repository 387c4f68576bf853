package search

import (
	"context"
	"errors"

	"curt/internal/link"
)

// The errors of an Index, tested with errors.Is.
var (
	// ErrUnavailable: the index cannot be asked now; a retry may help.
	ErrUnavailable = errors.New("search is unavailable")
	// ErrDamaged: what the index holds cannot be trusted. It wraps ErrUnavailable;
	// Reset, and filling it again, is the way out.
	ErrDamaged = damagedError{}
)

type damagedError struct{}

func (damagedError) Error() string        { return "the search index is damaged" }
func (damagedError) Is(target error) bool { return target == ErrUnavailable }

// Index finds documents by their terms, newest or oldest first. All methods may be
// called by many goroutines at once, but Apply, Tidy and Reset by one.
//
// What an index holds can be made again from the link store at any time, so nothing
// of it need survive a power cut; but documents and position move together, always.
type Index interface {
	// Position returns what the last Apply that succeeded left; the zero Position
	// of an index that was never filled.
	Position(ctx context.Context) (Position, error)

	// Apply removes, adds and replaces documents and moves the position, all or
	// nothing. A document whose id is known replaces the one before.
	Apply(ctx context.Context, b Batch) error

	// Find returns documents that match, in the order of their ids. It reads a
	// bounded amount: a page may be short, even empty, before the end, and only
	// Hits.More = false is the end. A walk that goes on from Hits.Next sees every
	// document that matched throughout exactly once.
	Find(ctx context.Context, q Query, p Page) (Hits, error)

	// Tidy does one bounded step of the index's own upkeep and reports whether
	// there is more to do. After a purge has reported false, nothing of documents
	// that were removed or replaced before it is left in the index's files.
	Tidy(ctx context.Context, purge bool) (more bool, err error)

	// Reset empties the index, whatever state it is in.
	Reset(ctx context.Context) error

	// Close ends the handle.
	Close() error
}

// Position says what an index knows of a link store.
type Position struct {
	// After: the walk through the store has read every link up to this id.
	After link.ID
	// Changes: the change log was read up to here.
	Changes link.Position
	// Creates: those of counted codes were read up to here; "" = by a release that did not.
	Creates link.Position
	// Filled: the whole store was read once, so that answers are complete.
	Filled bool
}

// Batch is what changes at once.
type Batch struct {
	Position Position   // after the batch
	Docs     []Document // each id once
	Gone     []link.ID  // documents to remove; unknown ones are no error
}

// Document is what an index knows of one link. Its ID is unique over all
// workspaces: it holds 74 random bits.
type Document struct {
	ID    link.ID
	Key   link.Key
	Terms []string // each once, at most MaxTerm bytes, in any order
}

// MaxTerm is the longest term in bytes.
const MaxTerm = 1 + link.MaxName + link.MaxTag + link.MaxCode + 259

// Query chooses documents: those that have a term of every range of All and none
// of any range of None. The empty Query chooses all.
type Query struct {
	All  []Range
	None []Range
}

// Range is a range of terms in the order of their bytes, From included, To not. An
// empty To is the end of all terms.
type Range struct{ From, To string }

// Exactly is the range of one term.
func Exactly(term string) Range { return Range{term, term + "\x00"} }

// Prefixed is the range of all terms that begin with prefix.
func Prefixed(prefix string) Range {
	for i := len(prefix); i > 0; i-- {
		if c := prefix[i-1]; c != 0xff {
			return Range{prefix, prefix[:i-1] + string([]byte{c + 1})}
		}
	}
	return Range{From: prefix}
}

// Holds reports whether the term lies in r.
func (r Range) Holds(term string) bool { return term >= r.From && (r.To == "" || term < r.To) }

// Page asks for up to Limit documents, Limit at least 1.
type Page struct {
	// From is where the page begins, itself included: documents with this id or
	// one before it in the order of the page. The zero ID is the beginning.
	From   link.ID
	Oldest bool // oldest first; default newest first
	Limit  int
}

// Hits is one page of what was found.
type Hits struct {
	Found []Hit
	More  bool    // Next begins the next page
	Next  link.ID // where the next page begins
}

// Hit is one document that was found.
type Hit struct {
	ID  link.ID
	Key link.Key
}
