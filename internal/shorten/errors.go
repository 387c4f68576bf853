package shorten

import (
	"errors"
	"fmt"

	"curt/internal/abuse"
	"curt/internal/link"
	"curt/internal/ratelimit"
)

// The errors of this package, tested with errors.Is. Beside them come those of
// link (ErrNotFound, ErrConflict, ErrUnavailable, ErrFull) and auth.
var (
	// ErrTaken: the alias belongs to another link, or did once. It wraps
	// link.ErrExists.
	ErrTaken = fmt.Errorf("this slug is taken: %w", link.ErrExists)
	// ErrReserved: the alias is a word that curt keeps for its own pages.
	ErrReserved = errors.New("this slug is reserved")
	// ErrKeyReused: the idempotency key stands for another request.
	ErrKeyReused = errors.New("the idempotency key was used for another request")
	// ErrKeyBusy: a request with the same idempotency key has not ended yet.
	ErrKeyBusy = errors.New("a request with this idempotency key is under way")
	// ErrLinkGone: the link that the idempotency key stands for was deleted since.
	ErrLinkGone = errors.New("the link that this idempotency key made was deleted")
	// ErrListed: a blocklist forbids links to the destination.
	ErrListed = errors.New("the destination is on a blocklist")
	// ErrVersion: the link is not at the version that the caller expects.
	ErrVersion = errors.New("the link has another version")
)

// InvalidError says which field of a request is wrong, and how. It wraps
// link.ErrInvalid: a retry cannot help.
type InvalidError struct {
	Field  string // the name in the API, as "long_url"
	Reason string // for the caller to read; never holds an internal error
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// PublicMessage returns the reason in words for the caller.
func (e *InvalidError) PublicMessage() string { return e.Reason }

// Is makes an InvalidError a link.ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == link.ErrInvalid }

func invalid(field, reason string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(reason, args...)}
}

// ListedError says which field of a request leads to where a blocklist forbids it. It
// wraps ErrListed.
type ListedError struct {
	Field string // the name in the API
	Rule  abuse.Rule
}

func (e *ListedError) Error() string { return e.Field + ": " + e.PublicMessage() }

// PublicMessage names the list and the host, and nothing else of the list.
func (e *ListedError) PublicMessage() string {
	return fmt.Sprintf("leads to %s, which the blocklist %s forbids", e.Rule.Host, e.Rule.List)
}

// Unwrap returns ErrListed.
func (e *ListedError) Unwrap() error { return ErrListed }

// LimitedError says that the caller has to wait.
type LimitedError struct{ Verdict ratelimit.Verdict }

func (e *LimitedError) Error() string {
	return fmt.Sprintf("too many creates, wait %s", e.Verdict.RetryAfter)
}
