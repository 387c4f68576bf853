package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/bodies"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/qr"
	"curt/internal/ratelimit"
	"curt/internal/review"
	"curt/internal/shorten"
)

// Problem is the answer to every request that failed (RFC 9457). Type is stable
// and relative to the instance.
type Problem struct {
	Type      string `json:"type" doc:"What kind of problem this is; stable."`
	Title     string `json:"title" doc:"The same for every problem of the type."`
	Status    int    `json:"status" doc:"The HTTP status."`
	Detail    string `json:"detail,omitzero" doc:"What was wrong this time."`
	Field     string `json:"field,omitzero" doc:"The field or parameter that was wrong."`
	RequestID string `json:"request_id,omitzero" doc:"Names the failure in the server's log."`
}

// kind is one type of problem.
type kind struct {
	name   string // the last segment of the type
	status int
	title  string
}

// The kinds of problems that this package finds itself; the rest stand in the
// table of mappings.
func kindInvalid() kind { return kind{"invalid-request", 400, "The request is invalid"} }
func kindNoRoute() kind { return kind{"no-such-path", 404, "There is nothing at this path"} }
func kindMethod() kind  { return kind{"method-not-allowed", 405, "The path does not take this method"} }
func kindSlow() kind    { return kind{"request-timeout", 408, "The request came too slowly"} }
func kindTooBig() kind  { return kind{"body-too-large", 413, "The body is too large"} }
func kindMedia() kind   { return kind{"unsupported-media-type", 415, "The body is not JSON"} }
func kindOrigin() kind  { return kind{"cross-site", 403, "Cross-site requests may not change anything"} }
func kindHost() kind    { return kind{"misdirected", 421, "This host is another's"} }
func kindLimited() kind { return kind{"rate-limited", 429, "Too many requests"} }
func kindBroken() kind  { return kind{"journal-broken", 409, "The journal is not as it was written"} }
func kindCrowded() kind { return kind{"server-busy", 503, "The server holds as much as it can"} }
func kindServer() kind  { return kind{"internal", 500, "The server failed"} }

// mapping says which problem an error is. detail is for the public; errors with a
// PublicMessage speak for themselves.
type mapping struct {
	err    error
	kind   kind
	detail string
}

// mappings is the one table from errors to problems; the first that errors.Is
// decides, so an error stands before what it wraps. An error that is not here is
// a 500 with a request id.
func mappings() []mapping {
	unavailable := kind{"unavailable", 503, "The service cannot do this now"}
	full := kind{"storage-full", 507, "There is no room for more"}
	return []mapping{
		{shorten.ErrReserved, kind{"slug-reserved", 409, "The slug is reserved"}, "this slug is reserved"},
		{shorten.ErrRefused, kind{"slug-refused", 409, "The slug is refused"}, "this slug is not possible here, choose another"},
		{shorten.ErrTaken, kind{"slug-taken", 409, "The slug is taken"}, "this slug is taken"},
		{shorten.ErrKeyReused, kind{"idempotency-key-reused", 422, "The idempotency key was used for another request"}, "choose a new Idempotency-Key for a new request"},
		{shorten.ErrKeyBusy, kind{"idempotency-key-busy", 409, "The first request with this idempotency key is under way"}, "the first request has not ended yet, try again"},
		{shorten.ErrLinkGone, kind{"link-deleted", 409, "The link was deleted"}, "the link that this Idempotency-Key made was deleted since"},
		{shorten.ErrListed, kind{"destination-listed", 422, "The destination is on a blocklist"}, "a blocklist of this service forbids links to this host"},
		{shorten.ErrBanned, kind{"banned", 403, "The caller may make no links"}, "ask the operator of this service"},
		{shorten.ErrBannedDestination, kind{"destination-banned", 422, "No links are made to this destination"}, "this service sends nobody there"},
		{shorten.ErrHarmful, kind{"destination-harmful", 422, "The destination looks harmful"}, "this service makes no link to this URL"},
		{shorten.ErrVersion, kind{"precondition-failed", 412, "The link has another version"}, "the link is not at the version that If-Match names"},
		{auth.ErrUnauthenticated, kind{"unauthenticated", 401, "A valid API key is required"}, "send 'Authorization: Bearer KEY' with a valid API key"},
		{auth.ErrForbidden, kind{"forbidden", 403, "The key may not do that"}, "the key lacks the scope for this"},
		{auth.ErrNoKey, kind{"no-such-key", 404, "There is no such key"}, "there is no such key"},
		{auth.ErrKeyExpired, kind{"key-expired", 409, "The key has expired"}, "the key has expired, make another"},
		{moderation.ErrNotFound, kind{"no-such-entry", 404, "There is no such entry"}, "there is no such entry of the journal, or no ban that it began"},
		{review.ErrNothingToAppeal, kind{"nothing-to-appeal", 409, "Nothing was decided against the link"}, "nothing was decided against this link"},
		{review.ErrBanned, kind{"network-banned", 403, "Nothing is taken from this network"}, "ask the operator of this service"},
		{review.ErrChallenge, kind{"challenge-failed", 403, "The challenge was not passed"}, "the challenge of this service was not passed"},
		{moderation.ErrAppealed, kind{"appeal-open", 409, "An appeal is open already"}, "an appeal for this link waits for its answer"},
		{moderation.ErrAnswered, kind{"appeal-answered", 409, "The appeal was answered"}, "the appeal for this link was answered; another waits for another decision"},
		{moderation.ErrNoAppeal, kind{"no-such-appeal", 404, "There is no such appeal"}, "there is no such appeal"},
		{moderation.ErrNoCase, kind{"not-under-review", 404, "The link is not under review"}, "this link is not under review, and never was"},
		{link.ErrNotFound, kind{"not-found", 404, "There is no such link"}, "there is no such link"},
		{link.ErrFull, full, "the link store is full"},
		{codegen.ErrExhausted, full, "no codes of the configured length are left"},
		{link.ErrUnavailable, unavailable, "this cannot be done now, try again"},
		{link.ErrUncertain, kind{"outcome-unknown", 503, "Nobody can say whether it was done"}, "the store did not say whether this was done, look before you try again"},
		{qr.ErrBusy, unavailable, "too many QR codes are being drawn, try again"},
		{analytics.ErrWatched, kindLimited(), "too many streams are open already, end one or try again in a minute"},
		{analytics.ErrLiveEnded, unavailable, "the server is about to stop, try again"},
		{analytics.ErrUnavailable, unavailable, "the statistics cannot be read now, try again"},
		{context.DeadlineExceeded, unavailable, "it took too long, try again"},
		{context.Canceled, unavailable, "the request was given up"},
		{link.ErrConflict, kind{"conflict", 409, "The link changed meanwhile"}, "others changed the link meanwhile"},
		{link.ErrInvalid, kindInvalid(), "the request is invalid"},
	}
}

// refusal is an error that this package found.
type refusal struct {
	kind   kind
	field  string
	detail string
}

func (r *refusal) Error() string { return r.kind.name + ": " + r.field + " " + r.detail }

// badField refuses a request for one of its fields or parameters.
func badField(field, detail string) error {
	return &refusal{kind: kindInvalid(), field: field, detail: detail}
}

// problem returns what err says to the public. known is false for an error that
// no table knows.
func (a *api) problem(err error) (p Problem, known bool) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.kind.problem().about(r.field, r.detail), true
	}
	if _, ok := errors.AsType[*shorten.LimitedError](err); ok {
		p = kindLimited().problem()
		p.Detail = "the limit of creates is reached, wait as long as Retry-After says"
		return p, true
	}
	if _, ok := errors.AsType[*review.LimitedError](err); ok {
		p = kindLimited().problem()
		p.Detail = "your network has sent many of these, wait as long as Retry-After says"
		return p, true
	}
	if scanned, ok := errors.AsType[*scanError](err); ok {
		p = kindLimited().problem()
		p.Detail = scanned.Error()
		return p, true
	}
	if bad, ok := qr.AsError(err); ok {
		return kindInvalid().problem().about(bad.Field, bad.Reason), true
	}
	if i, ok := errors.AsType[*auth.InvalidError](err); ok {
		return kindInvalid().problem().about(i.Field, i.PublicMessage()), true
	}
	if i, ok := errors.AsType[*moderation.InvalidError](err); ok {
		return kindInvalid().problem().about(i.Field, i.PublicMessage()), true
	}
	for _, m := range a.mappings {
		if !errors.Is(err, m.err) {
			continue
		}
		p = m.kind.problem()
		p.Detail = m.detail
		if i, ok := errors.AsType[*shorten.InvalidError](err); ok {
			return p.about(i.Field, i.PublicMessage()), true
		}
		if l, ok := errors.AsType[*shorten.ListedError](err); ok {
			return p.about(l.Field, l.PublicMessage()), true
		}
		if h, ok := errors.AsType[*shorten.HarmfulError](err); ok {
			return p.about(h.Field, h.PublicMessage()), true
		}
		if b, ok := errors.AsType[*shorten.BannedError](err); ok {
			if m.err == shorten.ErrBanned { //nolint:errorlint // a row of the table, not an error that came
				b.Field = "" // no field is wrong
			}
			return p.about(b.Field, b.PublicMessage()), true
		}
		return p, true
	}
	return kindServer().problem(), false
}

func (k kind) problem() Problem {
	return Problem{Type: "/problems/" + k.name, Title: k.title, Status: k.status}
}

// about says what was wrong this time, and with which field; the detail is enough
// for those who only show it.
func (p Problem) about(field, detail string) Problem {
	p.Field, p.Detail = field, detail
	if field != "" {
		p.Detail = field + ": " + detail
	}
	return p
}

// fail answers a request with the problem that err is. Failures of the server's
// own are logged here, once, under an id that the answer repeats.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := a.explain(r, err)
	h := w.Header()
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", auth.Challenge)
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", retryAfter(err))
	case http.StatusTooManyRequests:
		limitHeaders(h, err)
	}
	writeProblem(w, p)
}

// explain is problem, with a line in the log for failures of the server's own. Those that
// the table knows may be met by every request for hours: they are logged at first and then
// each minute, with how many there were, and one by one only for who debugs.
func (a *api) explain(r *http.Request, err error) Problem {
	p, known := a.problem(err)
	level := slog.LevelWarn
	if !known {
		level = slog.LevelError
		p.Detail = "the failure was logged under the request_id"
	}
	if p.Status >= http.StatusInternalServerError && !errors.Is(err, context.Canceled) {
		var again slog.Attr
		if known {
			var due bool
			if again, due = a.failures.met(a.now(), failure{r.Pattern, p.Detail}); !due {
				level = slog.LevelDebug
			}
		}
		if !a.log.Enabled(r.Context(), level) {
			return p // an id would name nothing
		}
		p.RequestID = rand.Text()
		a.log.LogAttrs(r.Context(), level, "request failed",
			slog.Int("status", p.Status), slog.String("request_id", p.RequestID),
			slog.String("method", r.Method), slog.String("route", r.Pattern), slog.Any("err", err), again)
	}
	return p
}

// retryAfter is for what the server cannot do now.
func retryAfter(err error) string {
	if r, ok := errors.AsType[*refusal](err); ok && r.kind == kindCrowded() {
		return strconv.Itoa(seconds(bodies.RetryAfter))
	}
	return "1"
}

func limitHeaders(h http.Header, err error) {
	if limited, ok := errors.AsType[*review.LimitedError](err); ok {
		h.Set("Retry-After", strconv.Itoa(max(1, seconds(limited.Verdict.RetryAfter))))
		return
	}
	if scanned, ok := errors.AsType[*scanError](err); ok {
		h.Set("Retry-After", strconv.Itoa(max(1, seconds(scanned.wait))))
		return
	}
	limited, ok := errors.AsType[*shorten.LimitedError](err)
	if !ok {
		h.Set("Retry-After", "60") // streams end when their clients go, which nobody can foretell
		return
	}
	h.Set("Retry-After", strconv.Itoa(max(1, seconds(limited.Verdict.RetryAfter))))
	limitState(h, &limited.Verdict)
}

// limitState tells a caller what is left of a limit; nil when none applies.
func limitState(h http.Header, v *ratelimit.Verdict) {
	if v == nil {
		return
	}
	h.Set("X-RateLimit-Limit", strconv.Itoa(v.Limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(v.Remaining))
	h.Set("X-RateLimit-Reset", strconv.Itoa(seconds(v.ResetAfter)))
}

// seconds rounds up: who waits that long is not refused again.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

func writeProblem(w http.ResponseWriter, p Problem) {
	text, err := json.Marshal(p, json.Deterministic(true))
	if err != nil { // only text that is no UTF-8 can fail, and none of ours is
		text = []byte(`{"type":"/problems/internal","title":"The server failed","status":500}`)
		p.Status = http.StatusInternalServerError
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/problem+json"}
	commonHeaders(h)
	w.WriteHeader(p.Status)
	_, _ = w.Write(text) // the client is gone: nobody is left to tell
}
