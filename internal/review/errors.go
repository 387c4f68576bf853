package review

import (
	"errors"
	"fmt"

	"curt/internal/moderation"
	"curt/internal/ratelimit"
)

// The errors of this package, tested with errors.Is. Beside them come those of
// moderation (InvalidError, ErrNoCase, ErrNoAppeal, ErrAppealed, ErrAnswered), auth and
// link.
var (
	// ErrNothingToAppeal: nothing was decided against the link, or the refused create is allowed.
	ErrNothingToAppeal = errors.New("there is no decision to appeal")
	// ErrBanned: nothing is taken from the caller's network.
	ErrBanned = errors.New("this network is banned")
	// ErrChallenge: the request does not hold what the challenge asks for.
	ErrChallenge = errors.New("challenge failed")
)

// LimitedError says that the caller's network has to wait.
type LimitedError struct{ Verdict ratelimit.Verdict }

func (e *LimitedError) Error() string {
	return fmt.Sprintf("too many requests from this network, retry in %s", e.Verdict.RetryAfter)
}

func invalid(field, reason string, args ...any) error {
	return &moderation.InvalidError{Field: field, Reason: fmt.Sprintf(reason, args...)}
}
