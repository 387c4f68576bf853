package kernel

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/bodies"
	"curt/internal/codegen"
	"curt/internal/job"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/qr"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
	"curt/internal/review"
	"curt/internal/shorten"
)

// Problem is the answer to every request that failed (RFC 9457). Type is stable
// and relative to the instance.
type Problem struct {
	Type      string    `json:"type" doc:"Identifies the kind of problem; stable."`
	Title     string    `json:"title" doc:"The title of the problem type."`
	Status    int       `json:"status" doc:"The HTTP status."`
	Detail    string    `json:"detail,omitzero" doc:"Details of this occurrence."`
	Field     string    `json:"field,omitzero" doc:"The invalid field or parameter."`
	RequestID string    `json:"request_id,omitzero" doc:"Identifies the failure in the server's log."`
	Case      string    `json:"case,omitzero" format:"uuid" doc:"Of destination-harmful: the case that a moderator decides. Absent: there is none, because too many are open or the accounts store is unavailable."`
	Until     time.Time `json:"reserved_until,omitzero" doc:"Of alias-held: when the reservation ends, unless a link is created or it is released."`
	AppealURL string    `json:"appeal_url,omitzero" format:"uri" doc:"The web page to appeal with the case."`
}

// Kind is one type of problem.
type Kind struct {
	name   string // the last segment of the type
	status int
	title  string
}

// The kinds of problems that no error of another package is; the others are in the table of
// mappings.
func kindInvalid() Kind { return Kind{"invalid-request", 400, "Invalid request"} }
func kindTooBig() Kind  { return Kind{"body-too-large", 413, "Request body too large"} }
func kindMedia() Kind   { return Kind{"unsupported-media-type", 415, "Unsupported media type"} }
func kindOrigin() Kind  { return Kind{"cross-site", 403, "Cross-site request refused"} }
func kindHost() Kind    { return Kind{"misdirected", 421, "Unknown host"} }
func kindLimited() Kind { return Kind{"rate-limited", 429, "Too many requests"} }
func kindBusy() Kind    { return Kind{"server-busy", 503, "Server busy"} }
func kindJob() Kind     { return Kind{"job-state", 409, "The job is in another state"} }
func kindHeld() Kind    { return Kind{"alias-held", 409, "Alias reserved by another workspace"} }
func kindServer() Kind  { return Kind{"internal", 500, "Internal server error"} }

// KindNoRoute is that of a path that the API does not have.
func KindNoRoute() Kind { return Kind{"no-such-path", 404, "Not found"} }

// KindMethod is that of another method than the path has.
func KindMethod() Kind { return Kind{"method-not-allowed", 405, "Method not allowed"} }

// KindSlow is that of a body that did not arrive in time.
func KindSlow() Kind { return Kind{"request-timeout", 408, "Request timeout"} }

// KindBroken is that of a journal that was changed from outside.
func KindBroken() Kind { return Kind{"journal-broken", 409, "Journal verification failed"} }

// mapping says which problem an error is. detail is for the public; errors with a
// PublicMessage speak for themselves.
type mapping struct {
	err    error
	kind   Kind
	detail string
}

// problemTable is the table of mappings.
type problemTable []mapping

// mappings is the one table from errors to problems; the first that errors.Is
// decides, so an error stands before what it wraps. An error that is not here is
// a 500 with a request id.
func mappings() problemTable {
	unavailable := Kind{"unavailable", 503, "Temporarily unavailable"}
	full := Kind{"storage-full", 507, "Storage full"}
	return problemTable{
		{shorten.ErrReserved, Kind{"slug-reserved", 409, "Alias reserved"}, "this slug is reserved"},
		{shorten.ErrRefused, Kind{"slug-refused", 409, "Alias not allowed"}, "this alias is not allowed; choose another"},
		{shorten.ErrTaken, Kind{"slug-taken", 409, "Alias taken"}, "this alias is taken"},
		{shorten.ErrNotHeld, Kind{"no-such-reservation", 404, "Reservation not found"}, "your workspace has not reserved this alias, or the reservation has ended"},
		{shorten.ErrNoReservations, Kind{"no-reservations", 501, "Reservations not available"}, "this service does not reserve aliases; create the link"},
		{link.ErrTooManyReservations, Kind{"too-many-reservations", 429, "Too many reservations"}, "your workspace has reserved as many aliases as it may; create their links, release some, or wait until they end"},
		{shorten.ErrKeyReused, Kind{"idempotency-key-reused", 422, "Idempotency key already used"}, "this Idempotency-Key was used for a different request; use a new one"},
		{shorten.ErrKeyBusy, Kind{"idempotency-key-busy", 409, "Request in flight"}, "the first request with this Idempotency-Key is still in flight; retry later"},
		{shorten.ErrLinkGone, Kind{"link-deleted", 409, "Link deleted"}, "the link created with this Idempotency-Key was deleted"},
		{shorten.ErrContentRemoved, Kind{"content-removed", 410, "Content removed"}, "the link expired, and its content has been removed since: it can no longer be changed, and its code stays taken"},
		{shorten.ErrUnreadable, Kind{"record-unreadable", 410, "Link not stored"}, "the link was accepted, but could not be stored: its record is damaged"},
		{shorten.ErrUnstorable, Kind{"record-invalid", 410, "Link not stored"}, "the link was accepted, but could not be stored: its record is invalid"},
		{shorten.ErrListed, Kind{"destination-listed", 422, "Destination on a blocklist"}, "the destination is on a blocklist of this service"},
		{shorten.ErrBanned, Kind{"banned", 403, "Link creation not allowed"}, "contact the operator of this service"},
		{shorten.ErrBannedDestination, Kind{"destination-banned", 422, "Destination banned"}, "this service does not allow links to this destination"},
		{shorten.ErrHarmful, Kind{"destination-harmful", 422, "Destination looks unsafe"}, "this service does not allow links to this URL"},
		{link.ErrPending, Kind{"link-pending", 409, "Link not written yet"}, "the link was accepted and is not written yet; retry after as many seconds as the Retry-After header says"},
		{shorten.ErrVersion, Kind{"precondition-failed", 412, "Precondition failed"}, "the link has changed: its version does not match If-Match"},
		{auth.ErrUnauthenticated, Kind{"unauthenticated", 401, "API key required"}, "send a valid API key as 'Authorization: Bearer KEY'"},
		{auth.ErrForbidden, Kind{"forbidden", 403, "Permission denied"}, "the key lacks the required scope"},
		{auth.ErrNoKey, Kind{"no-such-key", 404, "Key not found"}, "no such key"},
		{job.ErrNoJob, Kind{"no-such-job", 404, "There is no such job"}, "there is no such job, or no more"},
		{job.ErrTooMany, Kind{"too-many-jobs", 429, "The workspace has too many jobs"}, "wait until some have ended, cancel or remove some"},
		{job.ErrTooBig, Kind{"job-too-large", 413, "The job is too large"}, "a job takes at most 256 MiB of input"},
		{job.ErrState, kindJob(), "the state of the job does not allow this"},
		{auth.ErrKeyExpired, Kind{"key-expired", 409, "Key expired"}, "the key has expired; create another"},
		{moderation.ErrNotFound, Kind{"no-such-entry", 404, "Journal entry not found"}, "no such journal entry, or no active ban with this number"},
		{review.ErrNothingToAppeal, Kind{"nothing-to-appeal", 409, "Nothing to appeal"}, "there is no decision to appeal"},
		{review.ErrBanned, Kind{"network-banned", 403, "Network banned"}, "contact the operator of this service"},
		{review.ErrChallenge, Kind{"challenge-failed", 403, "Challenge failed"}, "the challenge of this service was not passed"},
		{moderation.ErrAppealed, Kind{"appeal-open", 409, "Appeal already open"}, "an appeal is already pending"},
		{moderation.ErrAnswered, Kind{"appeal-answered", 409, "Appeal already answered"}, "this appeal was answered; you can appeal again after a new decision"},
		{moderation.ErrNoAppeal, Kind{"no-such-appeal", 404, "Appeal not found"}, "no such appeal"},
		{moderation.ErrNoCase, Kind{"not-under-review", 404, "Link not under review"}, "this link has never been under review"},
		{moderation.ErrNoDestination, Kind{"no-such-case", 404, "Case not found"}, "no such case"},
		{link.ErrNotFound, Kind{"not-found", 404, "No such link"}, "no such link"},
		{link.ErrFull, full, "the link store is full"},
		{codegen.ErrExhausted, full, "all codes of the configured length are used"},
		{link.ErrUnavailable, unavailable, "temporarily unavailable; retry later"},
		{link.ErrUncertain, Kind{"outcome-unknown", 503, "Outcome unknown"}, "the change may have been applied; check before retrying"},
		{qr.ErrBusy, unavailable, "too many QR codes are being generated; retry later"},
		{analytics.ErrWatched, kindLimited(), "too many open streams; close one or retry in a minute"},
		{analytics.ErrLiveEnded, unavailable, "the server is shutting down; retry later"},
		{analytics.ErrIncomplete, unavailable, "the statistics are incomplete: the database that is left of several lacks clicks, and is not queried until it has them"},
		{analytics.ErrUnavailable, unavailable, "the statistics are temporarily unavailable; retry later"},
		{context.DeadlineExceeded, unavailable, "timed out; retry later"},
		{context.Canceled, unavailable, "the request was cancelled"},
		{link.ErrConflict, Kind{"conflict", 409, "Conflicting update"}, "the link was changed at the same time"},
		{link.ErrInvalid, kindInvalid(), "the request is invalid"},
	}
}

// refusal is an error that this package found.
type refusal struct {
	kind   Kind
	field  string
	detail string
}

func (r *refusal) Error() string { return r.kind.name + ": " + r.field + " " + r.detail }

// Refuse is the error of a request that an operation refuses.
func Refuse(k Kind, detail string) error { return &refusal{kind: k, detail: detail} }

// IsRefusal reports whether an error is one of [Refuse] or [BadField].
func IsRefusal(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// LimitedError refuses a network that requested many unknown codes.
type LimitedError struct{ Wait time.Duration }

func (*LimitedError) Error() string {
	return "too many unknown codes were requested from your network; retry after as many seconds as the Retry-After header says"
}

// BadField refuses a request for one of its fields or parameters.
func BadField(field, detail string) error {
	return &refusal{kind: kindInvalid(), field: field, detail: detail}
}

// problem returns what err says to the public. known is false for an error that
// no table knows.
func (t problemTable) problem(err error) (p Problem, known bool) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.kind.problem().about(r.field, r.detail), true
	}
	if _, ok := errors.AsType[*shorten.LimitedError](err); ok {
		p = kindLimited().problem()
		p.Detail = "create limit reached; retry after as many seconds as the Retry-After header says"
		return p, true
	}
	if _, ok := errors.AsType[*review.LimitedError](err); ok {
		p = kindLimited().problem()
		p.Detail = "too many requests from your network; retry after as many seconds as the Retry-After header says"
		return p, true
	}
	if scanned, ok := errors.AsType[*LimitedError](err); ok {
		p = kindLimited().problem()
		p.Detail = scanned.Error()
		return p, true
	}
	if held, ok := errors.AsType[*link.HeldError](err); ok {
		p = kindHeld().problem()
		p.Detail, p.Until = "another workspace has reserved this alias until "+held.Reservation.Until.UTC().Format(time.RFC3339), held.Reservation.Until
		return p, true
	}
	if gap, ok := errors.AsType[*job.OffsetError](err); ok {
		return kindJob().problem().about("offset", gap.Error()), true
	}
	if size, ok := errors.AsType[*job.SizeError](err); ok {
		return kindInvalid().problem().about("size", size.Error()), true
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
	for _, m := range t {
		if errors.Is(err, m.err) {
			return m.problem(err), true
		}
	}
	return kindServer().problem(), false
}

// problem returns what the row says about err, with what the error itself says to the public.
func (m *mapping) problem(err error) Problem {
	p := m.kind.problem()
	p.Detail = m.detail
	if i, ok := errors.AsType[*shorten.InvalidError](err); ok {
		return p.about(i.Field, i.PublicMessage())
	}
	if l, ok := errors.AsType[*shorten.ListedError](err); ok {
		return p.about(l.Field, l.PublicMessage())
	}
	if h, ok := errors.AsType[*shorten.HarmfulError](err); ok {
		if !h.Case.IsZero() {
			p.Case = h.Case.String()
		}
		return p.about(h.Field, h.PublicMessage())
	}
	if b, ok := errors.AsType[*shorten.BannedError](err); ok {
		if m.err == shorten.ErrBanned { //nolint:errorlint // a row of the table, not an error that came
			b.Field = "" // no field is wrong
		}
		return p.about(b.Field, b.PublicMessage())
	}
	return p
}

func (k Kind) problem() Problem {
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

// Explain returns what the API says about an error: a text, and the status.
func Explain(err error) (detail string, status int) {
	p, _ := mappings().problem(err)
	return p.Detail, p.Status
}

// Fail answers a request with the problem that err is. Failures of the server's
// own are logged here, once, under an id that the answer repeats.
func (k *Kernel) Fail(w http.ResponseWriter, r *http.Request, err error) {
	p := k.explain(r, err)
	h := w.Header()
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", auth.Challenge)
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", retryAfter(err))
	case http.StatusConflict:
		if pending, ok := errors.AsType[*link.PendingError](err); ok {
			h.Set("Retry-After", strconv.Itoa(max(1, seconds(pending.After))))
		}
		if held, ok := errors.AsType[*link.HeldError](err); ok {
			h.Set("Retry-After", strconv.Itoa(max(1, seconds(held.Reservation.Left))))
		}
	case http.StatusTooManyRequests:
		limitHeaders(h, err)
	}
	writeProblem(w, p)
}

// explain is problem, with a line in the log for failures of the server's own. Those that
// the table knows may be met by every request for hours: they are logged at first and then
// each minute, with how many there were, and one by one only for who debugs.
func (k *Kernel) explain(r *http.Request, err error) Problem {
	p, known := k.problems.problem(err)
	if p.Case != "" {
		p.AppealURL = k.cfg.Hosts.Load().Base() + "/appeal?case=" + p.Case
	}
	level := slog.LevelDebug
	if !known {
		level = slog.LevelError
		p.Detail = "the error was logged with this request_id"
	}
	if p.Status < http.StatusInternalServerError || p.Status == http.StatusNotImplemented || errors.Is(err, context.Canceled) {
		return p // 501 is a setting, and nothing that failed
	}
	const message = "request failed"
	id := rand.Text()
	attrs := []slog.Attr{slog.Int("status", p.Status), slog.String("request_id", id), slog.String("method", r.Method), slog.String("route", r.Pattern)}
	if !known || !k.failures.log(r.Context(), k.cfg.Now(), k.cfg.Log, failure{r.Pattern, p.Detail}, message, err, attrs...) {
		if !k.cfg.Log.Enabled(r.Context(), level) {
			return p // an id would name nothing
		}
		k.cfg.Log.LogAttrs(r.Context(), level, message, append(attrs, slog.Any("err", err))...)
	}
	p.RequestID = id
	return p
}

// Problem is what the call is answered where one of several orders fails with err.
func (c *Call) Problem(err error) *Problem {
	p := c.kernel.explain(c.R, err)
	return &p
}

// retryAfter is for what the server cannot do now.
func retryAfter(err error) string {
	if r, ok := errors.AsType[*refusal](err); ok && r.kind == kindBusy() {
		return strconv.Itoa(seconds(bodies.RetryAfter))
	}
	return "1"
}

func limitHeaders(h http.Header, err error) {
	if limited, ok := errors.AsType[*review.LimitedError](err); ok {
		h.Set("Retry-After", strconv.Itoa(max(1, seconds(limited.Verdict.RetryAfter))))
		return
	}
	if scanned, ok := errors.AsType[*LimitedError](err); ok {
		h.Set("Retry-After", strconv.Itoa(max(1, seconds(scanned.Wait))))
		return
	}
	limited, ok := errors.AsType[*shorten.LimitedError](err)
	if !ok {
		h.Set("Retry-After", "60") // streams end when their clients go, which nobody can foretell
		return
	}
	h.Set("Retry-After", strconv.Itoa(max(1, seconds(limited.Verdict.RetryAfter))))
	LimitHeaders(h, &limited.Verdict)
}

// LimitHeaders are what is left of a limit; nil when none applies.
func LimitHeaders(h http.Header, v *ratelimit.Verdict) {
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
		text = []byte(`{"type":"/problems/internal","title":"Internal server error","status":500}`)
		p.Status = http.StatusInternalServerError
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/problem+json"}
	CommonHeaders(h)
	w.WriteHeader(p.Status)
	_, _ = w.Write(text) // the client is gone: nobody is left to tell
}

// ProblemType is what the documents say about one type of problem.
type ProblemType struct {
	Name   string // the last segment of the type
	Status int
	Title  string
	Detail string
}

// ProblemTypes lists every type that this service answers, by name: those of the API
// and those that visitors of links meet.
func ProblemTypes() []ProblemType {
	var all []ProblemType
	seen := map[string]bool{}
	add := func(p ProblemType) {
		if !seen[p.Name] {
			seen[p.Name] = true
			all = append(all, p)
		}
	}
	for _, o := range ownKinds() {
		add(ProblemType{o.kind.name, o.kind.status, o.kind.title, o.detail})
	}
	for _, m := range mappings() {
		add(ProblemType{m.kind.name, m.kind.status, m.kind.title, sentence(m.detail)})
	}
	for _, p := range redirect.Problems() {
		add(ProblemType{p.Name(), p.Status(), p.Title(), p.Detail()})
	}
	slices.SortFunc(all, func(a, b ProblemType) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// sentence makes one of the detail of a mapping.
func sentence(detail string) string {
	if detail == "" {
		return ""
	}
	first := detail[0]
	if 'a' <= first && first <= 'z' {
		first -= 'a' - 'A'
	}
	return string(first) + detail[1:] + "."
}

// explained is a kind with what there is to say about it.
type explained struct {
	kind   Kind
	detail string
}

// ownKinds are the kinds that stand in no mapping. A test finds those that are
// missing here.
func ownKinds() []explained {
	return []explained{
		{kindInvalid(), "A parameter or a member of the body is invalid; field names it, and detail says what is expected."},
		{KindNoRoute(), "No such path in the API."},
		{KindMethod(), "The Allow header lists the allowed methods. Links other than 307 and 308 allow only GET and HEAD."},
		{KindSlow(), "The body did not arrive in time."},
		{kindTooBig(), "The body exceeds the limit of the operation, which detail states."},
		{kindMedia(), "Bodies must be JSON in UTF-8, uncompressed, with Content-Type: application/json."},
		{kindOrigin(), "The request came from a page of another site. Send it from this service's own pages or from outside a browser."},
		{KindBroken(), "The journal was changed outside the server; detail says where, and curt doctor says more."},
		{kindHeld(), "Another workspace has reserved the alias. The reservation ends at reserved_until, unless a link is created or it is released."},
		{kindServer(), "An error in the server. It was logged with the request_id."},
		{kindBusy(), "Request bodies use all of their memory. Nothing was changed; retry after as many seconds as the Retry-After header says."},
		{kindHost(), "Without a key the API answers only at the configured hosts of this server, which protects against DNS rebinding."},
		{kindLimited(), "See Retry-After for the time to wait and X-RateLimit-* for the limit."},
	}
}
