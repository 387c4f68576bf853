package link

import (
	"errors"
	"fmt"
	"time"
)

// The errors of a Store, always tested with errors.Is. ErrUncertain and any other error of
// a write mean "may have happened".
var (
	// ErrNotFound: the store was asked and has no such link. It is never the
	// answer of a store that could not be asked.
	ErrNotFound = errors.New("link not found")
	// ErrExists: the key belongs to another link, or did once.
	ErrExists = errors.New("code already exists")
	// ErrTooManyReservations: the workspace holds as many keys as it may. It wraps ErrConflict.
	ErrTooManyReservations = fmt.Errorf("too many reservations: %w", ErrConflict)
	// ErrPending: the link was accepted and is not written yet, so that it cannot be changed. It wraps ErrConflict.
	ErrPending = fmt.Errorf("the link is not written yet: %w", ErrConflict)
	// ErrConflict: the link changed since it was read, or the ID names another key.
	ErrConflict = errors.New("link was changed concurrently")
	// ErrInvalid: the argument can never be stored; a retry cannot help.
	ErrInvalid = errors.New("invalid link")
	// ErrUnavailable: the store cannot be asked now; a retry may help.
	ErrUnavailable = errors.New("link store unavailable")
	// ErrUncertain: nobody can say whether the write happened, because the store was asked
	// and its answer was lost. It may also happen a moment later.
	ErrUncertain = errors.New("the outcome of the write is unknown")
	// ErrFull: the store has no room for a write; reads go on. It wraps
	// ErrUnavailable, so that callers who only retry need not know it.
	ErrFull = fullError{}
)

type fullError struct{}

func (fullError) Error() string        { return "link store is full" }
func (fullError) Is(target error) bool { return target == ErrUnavailable }

// Unavailable has an error be ErrUnavailable without a word about the link store: what cannot be asked now is something else
// that links need, such as ZooKeeper or Kafka, and err names it.
func Unavailable(err error) error { return unavailableError{err} }

type unavailableError struct{ error }

func (e unavailableError) Unwrap() error      { return e.error }
func (unavailableError) Is(target error) bool { return target == ErrUnavailable }

// DamagedError says that what the store has of one link is not what was written. It wraps
// ErrUnavailable, because nobody can say what the link was; but asking again does not help,
// and other links are as they were: whoever works on many goes on without it.
type DamagedError struct {
	Key Key // that was asked for, or that the row bears

	// Workspace is whose the link is, where a checksum of its own proves that; "" = nobody
	// can say.
	Workspace WorkspaceID

	Err error // what the store found
}

func (e *DamagedError) Error() string   { return fmt.Sprintf("link %q: %v", e.Key.String(), e.Err) }
func (e *DamagedError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }

// NewerError says that a link has fields that change its answer and that this release does not
// know, so that it cannot say where the link leads. It wraps ErrUnavailable.
type NewerError struct {
	Key   Key
	Needs uint64 // the bits that are unknown
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("link %q was written by a newer release with features unknown to this one (bits %x)", e.Key.String(), e.Needs)
}

func (e *NewerError) Unwrap() error { return ErrUnavailable }

// PendingError is ErrPending, with when to try again.
type PendingError struct{ After time.Duration }

// Error implements error.
func (e *PendingError) Error() string { return ErrPending.Error() }

// Unwrap returns ErrPending.
func (e *PendingError) Unwrap() error { return ErrPending }
