package shorten

import (
	"errors"
	"fmt"

	"curt/internal/abuse"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/ratelimit"
)

// The errors of this package, tested with errors.Is. Beside them come those of
// link (ErrNotFound, ErrConflict, ErrUnavailable, ErrFull) and auth.
var (
	// ErrTaken: the alias belongs to another link, or did once. It wraps
	// link.ErrExists.
	ErrTaken = fmt.Errorf("this slug is taken: %w", link.ErrExists)
	// ErrReserved: the alias is a word that curt keeps for its own pages, or its operator.
	ErrReserved = errors.New("this slug is reserved")
	// ErrRefused: the alias is a word that nobody gets here.
	ErrRefused = errors.New("this slug is refused")
	// ErrKeyReused: the idempotency key stands for another request.
	ErrKeyReused = errors.New("the idempotency key was used for another request")
	// ErrKeyBusy: a request with the same idempotency key has not ended yet.
	ErrKeyBusy = errors.New("a request with this idempotency key is under way")
	// ErrLinkGone: the link that the idempotency key stands for was deleted since.
	ErrLinkGone = errors.New("the link that this idempotency key made was deleted")
	// ErrListed: a blocklist forbids links to the destination.
	ErrListed = errors.New("the destination is on a blocklist")
	// ErrBanned: whoever asks may make no links.
	ErrBanned = errors.New("this caller may make no links")
	// ErrBannedDestination: no links are made to there.
	ErrBannedDestination = errors.New("no links are made to this destination")
	// ErrHarmful: too much about the destination speaks against it.
	ErrHarmful = errors.New("the destination looks harmful")
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

// PublicMessage names the list and its entry, and nothing else of the list.
func (e *ListedError) PublicMessage() string {
	return fmt.Sprintf("leads to %s, which the blocklist %s forbids", e.Rule.Entry, e.Rule.List)
}

// Unwrap returns ErrListed.
func (e *ListedError) Unwrap() error { return ErrListed }

// HarmfulError says which field of a request leads to where too much speaks against it.
// It wraps ErrHarmful. What was seen and how it was weighed is for moderators alone:
// whoever is told learns to avoid it.
type HarmfulError struct{ Field string } // the name in the API

func (e *HarmfulError) Error() string { return e.Field + ": " + e.PublicMessage() }

// PublicMessage says what the caller can do.
func (e *HarmfulError) PublicMessage() string {
	return "leads to where visitors may be harmed, as far as this service can tell; give another URL, or ask the operator of this service to allow this one"
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
		return "this workspace may make no links any more; ask the operator of this service"
	case moderation.KindKey:
		return "this key may make no links any more; ask the operator of this service"
	case moderation.KindNetwork:
		return "no links are made from this network; ask the operator of this service"
	case moderation.KindLink, moderation.KindHost, moderation.KindDomain:
	}
	return "leads to where this service sends nobody; give another URL"
}

// Unwrap returns ErrBanned or ErrBannedDestination.
func (e *BannedError) Unwrap() error {
	switch e.Kind {
	case moderation.KindWorkspace, moderation.KindKey, moderation.KindNetwork:
		return ErrBanned
	case moderation.KindLink, moderation.KindHost, moderation.KindDomain:
	}
	return ErrBannedDestination
}

// LimitedError says that the caller has to wait.
type LimitedError struct{ Verdict ratelimit.Verdict }

func (e *LimitedError) Error() string {
	return fmt.Sprintf("too many creates, wait %s", e.Verdict.RetryAfter)
}
