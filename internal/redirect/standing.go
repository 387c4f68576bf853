package redirect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"curt/internal/link"
)

// Look returns what a visitor would meet who asks for code where r asks, without a
// visit: no click is counted or spent, and no query is forwarded. NoProblem means that
// the link leads to the Outcome's Location, be it its fallback; then the target is the
// link's. Like any other answer about an unknown code it is charged to the network.
func (h *Handler) Look(r *http.Request, code link.Code) (link.Target, Outcome) {
	q := Request{Method: r.Method, Accept: r.Header["Accept"], Client: h.client(r)}
	place := h.At(r.Host)
	var t link.Target
	out, err := Unknown(q), error(nil)
	if place.served {
		t, out, err = h.resolver.Standing(r.Context(), link.Key{Domain: place.domain.name, Code: code}, q, time.Now())
	}
	if err != nil {
		h.report(r.Context(), out, err)
	}
	if h.Metered(out, code) {
		out = h.Meter(r.Context(), out, q.Client)
	}
	return t, out
}

// Refuse answers with an Outcome that is a problem.
func (h *Handler) Refuse(w http.ResponseWriter, r *http.Request, out Outcome) { h.write(w, r, out) }

// Standing returns the target of k, and what a visitor would meet at now, as Look does.
// It takes GET and HEAD, whatever the link does. As with Resolve, the error is for the
// log.
func (r *Resolver) Standing(ctx context.Context, k link.Key, q Request, now time.Time) (link.Target, Outcome, error) {
	if q.Method != http.MethodGet && q.Method != http.MethodHead {
		return link.Target{}, notAllowed(q), nil
	}
	if !link.ValidCode(k.Code) {
		return link.Target{}, Unknown(q), nil
	}
	t, err := r.source.Lookup(ctx, k)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return link.Target{}, Unknown(q), nil
	case err != nil:
		return link.Target{}, unavailable(q), fmt.Errorf("look %s up: %w", k, err)
	}
	q.Preview, q.Query = true, "" // a look is no visit
	out, err := r.decide(ctx, k, t, q, now)
	return t, out, err
}
