package redirect

import (
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"curt/internal/clicks"
	"curt/internal/link"
)

// Request is what the decision needs to know of a request.
type Request struct {
	Method  string
	Query   string   // raw, without "?"
	Accept  []string // the lines of Accept
	Agent   string   // User-Agent
	Preview bool     // HEAD or a prefetch: never spends a click
	Client  netip.Addr

	// Stranger is the Host as sent, where it is no configured one; else empty. A link
	// that leads to it is not followed.
	Stranger string
}

// Outcome is the decision about one request, complete: whoever writes it adds only
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
	askAgain   = "private, max-age=0"
	keepShort  = "private, max-age=90" // of permanent redirects: browsers would keep them for good
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

// cacheControl lets nobody keep an answer past the link's expiry.
func cacheControl(t link.Target, now time.Time) string {
	kind, seconds := askAgain, int64(0)
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
		return askAgain
	case kind == keepPublic:
		return "public, max-age=" + strconv.FormatInt(left, 10)
	}
	return "private, max-age=" + strconv.FormatInt(left, 10)
}
