package moderation

import "errors"

// The errors of this package, tested with errors.Is; a store that cannot be asked is
// link.ErrUnavailable.
var (
	// ErrInvalid: an entry that no journal may hold; a retry cannot help.
	ErrInvalid = errors.New("invalid journal entry")
	// ErrNotFound: the journal was asked and has no such entry.
	ErrNotFound = errors.New("journal entry not found")
	// ErrBroken: the journal does not say what was appended.
	ErrBroken = errors.New("the chain of the journal is broken")
)
