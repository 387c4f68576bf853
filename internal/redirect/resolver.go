package redirect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/weburl"
)

// Resolver decides what a visitor is answered. It is safe for many goroutines.
type Resolver struct {
	source  Source
	spender link.Spender
	isBot   func(userAgent string) bool
	passes  *Passes // nil = a warning leads nowhere
}

// ResolverConfig names what a Resolver asks.
type ResolverConfig struct {
	Source  Source
	Spender link.Spender // counts down links with a bound of clicks
	// IsBot tells robots, whose visits do not spend a click; nil = nobody is one. It
	// is asked only about links with a bound.
	IsBot func(userAgent string) bool
	// Passes lead on from warning pages; nil = nothing does.
	Passes *Passes
}

// NewResolver returns a Resolver; Source and Spender are required.
func NewResolver(cfg ResolverConfig) (*Resolver, error) {
	if cfg.Source == nil || cfg.Spender == nil {
		return nil, errors.New("redirect: a resolver needs a source and a spender")
	}
	if cfg.IsBot == nil {
		cfg.IsBot = func(string) bool { return false }
	}
	return &Resolver{source: cfg.Source, spender: cfg.Spender, isBot: cfg.IsBot, passes: cfg.Passes}, nil
}

// Resolve returns the answer to a request for k at now. The Outcome is always
// complete; the error says, for the log, why it is a 5xx.
func (r *Resolver) Resolve(ctx context.Context, k link.Key, q Request, now time.Time) (Outcome, error) {
	if !link.ValidCode(k.Code) {
		return Unknown(q), nil
	}
	t, err := r.source.Lookup(ctx, k)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return Unknown(q), nil
	case err != nil:
		return unavailable(q), fmt.Errorf("resolve %s: %w", k, err)
	}
	return r.decide(ctx, k, t, q, now)
}

// Unknown is the answer to everything that names no link.
func Unknown(q Request) Outcome {
	out := refuse(NotFound, q)
	out.Click = clicks.Orphan
	return out
}

// unavailable counts as no click: whether there is such a link is not known.
func unavailable(q Request) Outcome {
	out := refuse(Unavailable, q)
	out.RetryAfter, out.Click = retrySeconds, 0
	return out
}

// decide is the table of answers. A link before its start is asked about first, and
// whatever else it is: that it was switched off or blocked would say that it is there.
func (r *Resolver) decide(ctx context.Context, k link.Key, t link.Target, q Request, now time.Time) (Outcome, error) {
	if t.Upcoming(now) {
		return Unknown(q), nil
	}
	switch state := t.At(now); state {
	case link.StateLive:
		return r.live(ctx, k, t, q, now)
	case link.StateNotYet:
		return Unknown(q), nil
	case link.StateExpired, link.StateExhausted:
		return r.over(k, t, problemOf(state), q, now), nil
	case link.StateWarning:
		if r.passes.opens(k, t, t.Destination, q, now) {
			out, err := r.live(ctx, k, t, q, now)
			return warned(out), err
		}
		return r.warn(k, t, t.Destination, named(t), q, now), nil
	case link.StateDeleted, link.StateLegal, link.StateBlocked, link.StateDisabled:
		return refuse(problemOf(state), q), nil
	}
	return refuse(BrokenLink, q), fmt.Errorf("resolve %s: %w: no state", k, link.ErrInvalid)
}

// live redirects, after a click was taken from what is left of a bounded link.
func (r *Resolver) live(ctx context.Context, k link.Key, t link.Target, q Request, now time.Time) (Outcome, error) {
	if !allows(t, q.Method) {
		return notAllowed(q), nil
	}
	if t.Loops || LeadsBack(t.Destination, q.Stranger) {
		return refuse(Loop, q), fmt.Errorf("resolve %s: %w: the destination is a host of ours", k, link.ErrInvalid)
	}
	to := t.Destination
	if t.ForwardQuery && q.Query != "" {
		to = withQuery(to, q.Query)
	}
	if len(to) > link.MaxDestination {
		return refuse(URITooLong, q), nil
	}
	if !safe(to) {
		return refuse(BrokenLink, q), fmt.Errorf("resolve %s: %w: the destination is no safe Location", k, link.ErrInvalid)
	}
	if t.Limited && !q.Preview && !r.isBot(q.Agent) {
		granted, err := r.spender.Spend(ctx, k, 1)
		switch {
		case errors.Is(err, link.ErrNotFound):
			return Unknown(q), nil
		case err != nil:
			return unavailable(q), fmt.Errorf("spend a click of %s: %w", k, err)
		case granted == 0:
			return r.over(k, t, Exhausted, q, now), nil
		}
	}
	return redirectTo(t, to, now), nil
}

// over answers for a link whose time or clicks have come to an end. A fallback that is
// no safe Location, or leads back to us, counts as none. Nobody is sent to that of a link
// with a warning unless by its page: whoever made the one URL made the other.
func (r *Resolver) over(k link.Key, t link.Target, p Problem, q Request, now time.Time) Outcome {
	switch {
	case !safe(t.Fallback), LeadsBack(t.Fallback, q.Stranger):
		return refuse(p, q)
	case !allows(t, q.Method):
		return notAllowed(q)
	case t.Safety != link.Clean && !r.passes.opens(k, t, t.Fallback, q, now):
		return r.warn(k, t, t.Fallback, t.Fallback, q, now)
	}
	out := Outcome{
		Status: http.StatusFound, Location: t.Fallback, NoIndex: t.NoIndex,
		CacheControl: askAgain, Click: clicks.FellBack,
	}
	if t.Safety != link.Clean {
		out = warned(out)
	}
	return out
}

// warned is the redirect of a visitor who went on from a warning page: once, whatever
// the link's own status says, so that nothing remembers the way past the page.
func warned(out Outcome) Outcome {
	if out.Problem == NoProblem && !out.Warned {
		out.Status, out.CacheControl, out.NoIndex, out.Warned = http.StatusFound, noStore, true, true
	}
	return out
}

// named is what the warning page says of the destination. Where clicks are bounded the
// address is the visit itself, and the page spends none: it says the host alone.
func named(t link.Target) string {
	if !t.Limited {
		return t.Destination
	}
	before, host, _ := weburl.Split(t.Destination)
	return before + host + "/…"
}

// warn names where the link leads to people, with a pass to go on; programs get a
// problem, so that none follows a link because of a 200.
func (r *Resolver) warn(k link.Key, t link.Target, to, named string, q Request, now time.Time) Outcome {
	if !allows(t, q.Method) {
		return notAllowed(q)
	}
	out := refuse(Warning, q)
	if out.HTML {
		out.Status, out.Destination, out.Onward = http.StatusOK, named, r.passes.onward(k, t, to, q, now)
	}
	return out
}

// allows reports whether the link may be followed by the method: 307 and 308 keep
// method and body, so any may; 301 and 302 turn some into GET.
func allows(t link.Target, method string) bool {
	return method == http.MethodGet || method == http.MethodHead ||
		t.Redirect == http.StatusTemporaryRedirect || t.Redirect == http.StatusPermanentRedirect
}

func notAllowed(q Request) Outcome {
	out := refuse(MethodNotAllowed, q)
	out.Allow = "GET, HEAD"
	return out
}
