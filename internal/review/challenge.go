package review

import (
	"context"
	"net/http"
)

// Challenge asks whoever reports or appeals for more than the form, such as a proof of
// work or the token of a service that tells people from programs. It is asked before the
// limits are charged and anything is read from a store.
//
// A request of a page has its form parsed (http.Request.PostForm); one of the API has
// its body read, so that a Challenge looks at its headers. Verify returns ErrChallenge
// for one that is not passed, and another error when nobody can say, which refuses the
// request as well. It is safe for many goroutines.
type Challenge interface {
	Verify(ctx context.Context, r *http.Request) error
}

// NoChallenge lets everybody pass: the limits of each network are what holds floods back.
type NoChallenge struct{}

// Verify implements Challenge.
func (NoChallenge) Verify(context.Context, *http.Request) error { return nil }
