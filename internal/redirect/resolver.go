package redirect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/weburl"
)

// Resolver decides the answer to a visitor. It is safe for many goroutines.
type Resolver struct {
	source  Source
	spender link.Spender
	isBot   func(userAgent string) bool
	passes  *Passes // nil = a warning does not continue
	limits  *Limits // nil = redirects have no bound
}

// ResolverConfig is what a Resolver needs.
type ResolverConfig struct {
	Source  Source
	Spender link.Spender // counts down links with a bound of clicks
	// IsBot recognises bots, whose visits do not spend a click; nil = none is. It
	// is called only for links with a click limit.
	IsBot func(userAgent string) bool
	// Passes continue from warning pages; nil = nothing does.
	Passes *Passes
	// Limits bound redirects; nil = nothing does.
	Limits *Limits
}

// NewResolver returns a Resolver; Source and Spender are required.
func NewResolver(cfg ResolverConfig) (*Resolver, error) {
	if cfg.Source == nil || cfg.Spender == nil {
		return nil, errors.New("redirect: expected a source and a spender")
	}
	if cfg.IsBot == nil {
		cfg.IsBot = func(string) bool { return false }
	}
	return &Resolver{source: cfg.Source, spender: cfg.Spender, isBot: cfg.IsBot, passes: cfg.Passes, limits: cfg.Limits}, nil
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

// decide is the table of answers. A link before its start comes first, in
// whatever state: that it was disabled or blocked would show that it exists.
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
		return r.ended(k, t, problemOf(state), q, now), nil
	case link.StateWarning:
		if r.passes.opens(k, t, t.Destination, q, now) {
			out, err := r.live(ctx, k, t, q, now)
			return warned(out), err
		}
		return r.warn(k, t, t.Destination, shownDestination(t), q, now), nil
	case link.StateDeleted:
		return refuse(goneAs(&t), q), nil
	case link.StateLegal, link.StateBlocked, link.StateDisabled:
		return refuse(problemOf(state), q), nil
	}
	return refuse(BrokenLink, q), fmt.Errorf("resolve %s: %w: no state", k, link.ErrInvalid)
}

// live redirects, after a click was taken from what is left of a bounded link.
func (r *Resolver) live(ctx context.Context, k link.Key, t link.Target, q Request, now time.Time) (Outcome, error) {
	if !allowsMethod(t, q.Method) {
		return notAllowed(q), nil
	}
	if t.Loops || LeadsBack(t.Destination, q.UnconfiguredHost) {
		return refuse(Loop, q), fmt.Errorf("resolve %s: %w: the destination is a host of this service", k, link.ErrInvalid)
	}
	to := t.Destination
	if t.ForwardQuery && q.Query != "" {
		to = withQuery(to, q.Query)
	}
	if len(to) > link.MaxDestination {
		return refuse(URITooLong, q), nil
	}
	if !safeLocation(to) {
		return refuse(BrokenLink, q), fmt.Errorf("resolve %s: %w: the destination is not a safe Location", k, link.ErrInvalid)
	}
	if out, ok := r.limit(k, q, now); !ok {
		return out, nil
	}
	if t.Limited && !q.Preview && !r.isBot(q.Agent) {
		granted, err := r.spender.Spend(ctx, k, 1)
		switch {
		case errors.Is(err, link.ErrNotFound):
			return Unknown(q), nil
		case err != nil:
			return unavailable(q), fmt.Errorf("spend a click of %s: %w", k, err)
		case granted == 0:
			return r.ended(k, t, Exhausted, q, now), nil
		}
	}
	return redirectTo(t, to, now), nil
}

// ended answers for a link whose time or clicks have come to an end. A fallback that is
// not a safe Location, or leads back to us, counts as none. That of a link with a warning is
// reached only by its page: both URLs have the same author.
func (r *Resolver) ended(k link.Key, t link.Target, p Problem, q Request, now time.Time) Outcome {
	switch {
	case !safeLocation(t.Fallback), LeadsBack(t.Fallback, q.UnconfiguredHost):
		return refuse(p, q)
	case !allowsMethod(t, q.Method):
		return notAllowed(q)
	case t.Safety != link.Clean && !r.passes.opens(k, t, t.Fallback, q, now):
		return r.warn(k, t, t.Fallback, t.Fallback, q, now)
	}
	if out, ok := r.limit(k, q, now); !ok {
		return out
	}
	out := Outcome{
		Status: http.StatusFound, Location: t.Fallback, NoIndex: t.NoIndex,
		CacheControl: revalidate, Click: clicks.FellBack,
	}
	if t.Safety != link.Clean {
		out = warned(out)
	}
	return out
}

// limit spends one redirect of the network and the link; false = the Outcome is the answer.
func (r *Resolver) limit(k link.Key, q Request, now time.Time) (Outcome, bool) {
	if r.limits == nil || q.peeks {
		return Outcome{}, true
	}
	wait, by := r.limits.Take(now, q.Client, k.Domain, string(k.Code))
	if wait == 0 {
		return Outcome{}, true
	}
	return r.limits.limited(q, wait, by), false
}

// warned is the redirect of a visitor who continued from a warning page: temporary, whatever
// the link's own status, so that no cache skips the page.
func warned(out Outcome) Outcome {
	if out.Problem == NoProblem && !out.Warned {
		out.Status, out.CacheControl, out.NoIndex, out.Warned = http.StatusFound, noStore, true, true
	}
	return out
}

// shownDestination is what the warning page says of the destination. Where clicks are bounded the
// address is the visit itself, and the page spends none: it says the host alone.
func shownDestination(t link.Target) string {
	if !t.Limited {
		return t.Destination
	}
	before, host, _ := weburl.Split(t.Destination)
	return before + host + "/…"
}

// warn names where the link leads to people, with a pass to go on; programs get a
// problem, so that none follows a link because of a 200.
func (r *Resolver) warn(k link.Key, t link.Target, to, named string, q Request, now time.Time) Outcome {
	if !allowsMethod(t, q.Method) {
		return notAllowed(q)
	}
	out := refuse(Warning, q)
	if out.HTML {
		out.Status, out.Destination, out.Onward = http.StatusOK, named, r.passes.onward(k, t, to, q, now)
	}
	return out
}

// allowsMethod reports whether the link may be followed by the method: 307 and 308 keep
// method and body, so any may; 301 and 302 turn some into GET.
func allowsMethod(t link.Target, method string) bool {
	return method == http.MethodGet || method == http.MethodHead ||
		t.Redirect == http.StatusTemporaryRedirect || t.Redirect == http.StatusPermanentRedirect
}

func notAllowed(q Request) Outcome {
	out := refuse(MethodNotAllowed, q)
	out.Allow = "GET, HEAD"
	return out
}

// Peek returns the target of k, and what a visitor would see at now, as Handler.Peek does.
// It takes GET and HEAD, whatever the link does. As with Resolve, the error is for the
// log.
func (r *Resolver) Peek(ctx context.Context, k link.Key, q Request, now time.Time) (link.Target, Outcome, error) {
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
	q.Preview, q.Query, q.peeks = true, "", true // not a visit
	out, err := r.decide(ctx, k, t, q, now)
	return t, out, err
}

// Request is what the decision needs to know of a request.
type Request struct {
	Method  string
	Query   string   // raw, without "?"
	Accept  []string // the lines of Accept
	Agent   string   // User-Agent
	Preview bool     // HEAD or a prefetch: never spends a click
	Client  netip.Addr
	peeks   bool // asks for the answer alone: no redirect follows

	// UnconfiguredHost is the Host as sent, where it is not configured; else empty. A link
	// that leads to it is not followed.
	UnconfiguredHost string
}

// Outcome is the decision about one request, complete: its writer adds only
// Date and, from Problem, the body.
type Outcome struct {
	Status       int
	Location     string  // of a redirect: safe as a header, at most 8,192 bytes
	Problem      Problem // NoProblem = a redirect, without a body
	CacheControl string
	NoIndex      bool // X-Robots-Tag: noindex
	RetryAfter   int  // seconds; 0 = no header
	Allow        string
	HTML         bool   // of a problem: a page, not problem+json
	Destination  string // named on the warning page, as text
	Onward       string // path and query of the warning page's link that leads on; "" = none
	Click        clicks.Outcome
	Warned       bool // of a redirect: the visitor was warned, and went on
}

const (
	noStore    = "no-store"
	revalidate = "private, max-age=0"
	keepShort  = "private, max-age=90" // of permanent redirects: browsers would cache them forever
	keepPublic = "public, max-age=60"  // for CDNs, where the owner gave up exact counts

	// retrySeconds is when a visitor may find the store back: it is polled each second.
	retrySeconds = 2
)

// redirectTo is an own redirect of t.
func redirectTo(t link.Target, location string, now time.Time) Outcome {
	return Outcome{
		Status: int(t.Redirect), Location: location, NoIndex: t.NoIndex,
		CacheControl: cacheControl(t, now), Click: clicks.Redirected,
	}
}

// refuse is an answer that leads nowhere.
func refuse(p Problem, q Request) Outcome {
	return Outcome{
		Status: p.describe().status, Problem: p, CacheControl: noStore, NoIndex: true,
		HTML: wantsHTML(q.Accept), Click: clicks.Refused,
	}
}

// cacheControl lets no cache keep an answer past the link's expiry.
func cacheControl(t link.Target, now time.Time) string {
	kind, seconds := revalidate, int64(0)
	switch permanent := t.Redirect == http.StatusMovedPermanently || t.Redirect == http.StatusPermanentRedirect; {
	case t.Cacheable && t.Plain():
		kind, seconds = keepPublic, 60
	case permanent && !t.Limited:
		kind, seconds = keepShort, 90
	}
	if seconds == 0 || t.Expires == 0 {
		return kind
	}
	left := (t.Expires - now.UnixMilli()) / 1000
	switch {
	case left >= seconds:
		return kind
	case left <= 0:
		return revalidate
	case kind == keepPublic:
		return "public, max-age=" + strconv.FormatInt(left, 10)
	}
	return "private, max-age=" + strconv.FormatInt(left, 10)
}

// safeLocation reports whether a stored URL may be a Location: absolute, http or https, of
// printable ASCII, not too long. The write path stores nothing else; this is the
// second lock on the same door, for rows that came another way.
func safeLocation(url string) bool {
	if len(url) > link.MaxDestination {
		return false
	}
	rest, ok := strings.CutPrefix(url, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(url, "http://")
	}
	if !ok || rest == "" || rest[0] == '/' {
		return false
	}
	for i := range len(rest) {
		if rest[i] < 0x21 || rest[i] > 0x7e {
			return false
		}
	}
	return true
}

// withQuery returns the URL with the pairs of a raw query added to its own, before
// its fragment. "qr=1" and passes are ours and stay here; bytes that may not stand in a query
// are percent-encoded as browsers do (WHATWG URL, special-query percent-encode set).
func withQuery(url, query string) string {
	base, fragment, _ := strings.Cut(url, "#")
	var b strings.Builder
	b.Grow(len(url) + 1 + len(query))
	b.WriteString(base)
	sep := byte('?')
	if strings.Contains(base, "?") {
		sep = '&'
		if last := base[len(base)-1]; last == '?' || last == '&' {
			sep = 0
		}
	}
	for pair := range strings.SplitSeq(query, "&") {
		if isOwnPair(pair) {
			continue
		}
		if sep != 0 {
			b.WriteByte(sep)
		}
		sep = '&'
		encode(&b, pair)
	}
	if fragment != "" {
		b.WriteByte('#')
		b.WriteString(fragment)
	}
	return b.String()
}

// qrPair is the trigger that a printed code carries.
const qrPair = "qr=1"

func encode(b *strings.Builder, s string) {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x21, c > 0x7e, c == '"', c == '#', c == '<', c == '>', c == '\'':
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&0xf])
		default:
			b.WriteByte(c)
		}
	}
}
