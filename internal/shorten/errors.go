package shorten

import (
	"errors"
	"fmt"

	"curt/internal/abuse/blocklist"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/ratelimit"
)

// The errors of this package, tested with errors.Is. Beside them come those of
// link (ErrNotFound, ErrConflict, ErrUnavailable, ErrFull) and auth.
var (
	// ErrTaken: the alias belongs to another link, or did once. It wraps
	// link.ErrExists.
	ErrTaken = fmt.Errorf("this alias is taken: %w", link.ErrExists)
	// ErrReserved: the alias is a word that curt keeps for its own pages, or its operator.
	ErrReserved = errors.New("this slug is reserved")
	// ErrRefused: the alias is a word that nobody gets here.
	ErrRefused = errors.New("this alias is not allowed")
	// ErrNotHeld: the workspace does not hold the alias. It wraps link.ErrNotFound.
	ErrNotHeld = fmt.Errorf("the alias is not held: %w", link.ErrNotFound)
	// ErrNoReservations: this service holds no aliases.
	ErrNoReservations = errors.New("aliases cannot be reserved here")
	// ErrKeyReused: the idempotency key stands for another request.
	ErrKeyReused = errors.New("the idempotency key was used for a different request")
	// ErrKeyBusy: a request with the same idempotency key has not ended yet.
	ErrKeyBusy = errors.New("a request with this idempotency key is in flight")
	// ErrLinkGone: the link that the idempotency key stands for was deleted since.
	ErrLinkGone = errors.New("the link created with this idempotency key was deleted")
	// ErrContentRemoved: the link expired long ago and its content is gone, so that nothing can be
	// changed any more. It wraps link.ErrNotFound.
	ErrContentRemoved = fmt.Errorf("the content of the expired link was removed: %w", link.ErrNotFound)
	// ErrUnreadable and ErrUnstorable: the link was accepted and can never be written, because its record is damaged or invalid. They
	// wrap link.ErrNotFound.
	ErrUnreadable = fmt.Errorf("the record of the accepted link is damaged: %w", link.ErrNotFound)
	ErrUnstorable = fmt.Errorf("the record of the accepted link is invalid: %w", link.ErrNotFound)
	// ErrListed: a blocklist forbids links to the destination.
	ErrListed = errors.New("the destination is on a blocklist")
	// ErrBanned: whoever asks may make no links.
	ErrBanned = errors.New("the caller is banned")
	// ErrBannedDestination: no links are made to there.
	ErrBannedDestination = errors.New("the destination is banned")
	// ErrHarmful: too much about the destination speaks against it.
	ErrHarmful = errors.New("the destination looks unsafe")
	// ErrVersion: the link is not at the version that the caller expects.
	ErrVersion = errors.New("the link has a different version")
)

// Unwritten returns ErrUnreadable or ErrUnstorable where a link is the tombstone of one that was accepted and never written.
func Unwritten(l *link.Link) error {
	switch l.Unwritten() {
	case link.UnwrittenUnreadable:
		return ErrUnreadable
	case link.UnwrittenInvalid:
		return ErrUnstorable
	}
	return nil
}

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

func Invalid(field, reason string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(reason, args...)}
}

// ListedError says which field of a request leads to where a blocklist forbids it. It
// wraps ErrListed.
type ListedError struct {
	Field string // the name in the API
	Rule  blocklist.Rule
}

func (e *ListedError) Error() string { return e.Field + ": " + e.PublicMessage() }

// PublicMessage names the list and its entry, and nothing else of the list.
func (e *ListedError) PublicMessage() string {
	return fmt.Sprintf("%s is on the blocklist %s", e.Rule.Entry, e.Rule.List)
}

// Unwrap returns ErrListed.
func (e *ListedError) Unwrap() error { return ErrListed }

// HarmfulError says which field of a request leads to where too much speaks against it.
// It wraps ErrHarmful. What was seen and how it was weighed is for moderators alone:
// whoever is told learns to avoid it.
type HarmfulError struct {
	Field string  // the name in the API
	Case  link.ID // of the destination, which a moderator may allow; zero = there is none

	Blocked *moderation.BlockedCreate // what a moderator is to see; nil = one has decided, or cannot
}

func (e *HarmfulError) Error() string { return e.Field + ": " + e.PublicMessage() }

// PublicMessage says what the caller can do.
func (e *HarmfulError) PublicMessage() string {
	if !e.Case.IsZero() {
		return "the destination looks unsafe; use another URL, or appeal with case " + e.Case.String()
	}
	return "the destination looks unsafe; use another URL, or ask the operator of this service to allow it"
}

// Unwrap returns ErrHarmful.
func (e *HarmfulError) Unwrap() error { return ErrHarmful }

// BannedError says what a ban stands against: the caller, or where a field leads. It
// wraps ErrBanned or ErrBannedDestination.
type BannedError struct {
	Field string // the name in the API
	Kind  moderation.Kind
}

func (e *BannedError) Error() string { return e.Field + ": " + e.PublicMessage() }

// PublicMessage says who is banned; why is in the journal, for moderators.
func (e *BannedError) PublicMessage() string {
	switch e.Kind {
	case moderation.KindWorkspace:
		return "this workspace is banned from creating links; contact the operator of this service"
	case moderation.KindKey:
		return "this key is banned from creating links; contact the operator of this service"
	case moderation.KindNetwork:
		return "your network is banned from creating links; contact the operator of this service"
	default:
	}
	return "this service does not allow links to this destination; use another URL"
}

// Unwrap returns ErrBanned or ErrBannedDestination.
func (e *BannedError) Unwrap() error {
	switch e.Kind {
	case moderation.KindWorkspace, moderation.KindKey, moderation.KindNetwork:
		return ErrBanned
	default:
	}
	return ErrBannedDestination
}

// LimitedError says that the caller has to wait.
type LimitedError struct{ Verdict ratelimit.Verdict }

func (e *LimitedError) Error() string {
	return fmt.Sprintf("too many creates, retry in %s", e.Verdict.RetryAfter)
}
