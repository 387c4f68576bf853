package redirect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"curt/internal/link"
)

// Standing returns what a visitor of k would meet at now, without a visit: no click is
// spent, and no query is forwarded. NoProblem means that the link leads somewhere, be
// it to its fallback; the Outcome says no more then. It takes GET and HEAD, whatever
// the link does. As with Resolve, the error is for the log.
func (r *Resolver) Standing(ctx context.Context, k link.Key, q Request, now time.Time) (Outcome, error) {
	if q.Method != http.MethodGet && q.Method != http.MethodHead {
		return notAllowed(q), nil
	}
	if !link.ValidCode(k.Code) {
		return Unknown(q), nil
	}
	t, err := r.source.Lookup(ctx, k)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return Unknown(q), nil
	case err != nil:
		return unavailable(q), fmt.Errorf("look %s up: %w", k, err)
	}
	t.Limited, t.ForwardQuery = false, false // a picture is no visit
	out, err := r.decide(ctx, k, t, q, now)
	if out.Problem == Warning { // a page of 200 would look like a picture that failed
		out = refuse(Warning, q)
	}
	return out, err
}
