package redirect

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/clicks"
	"curt/internal/clientaddr"
	"curt/internal/hosts"
	"curt/internal/link"
)

// HandlerConfig says how a Handler serves.
type HandlerConfig struct {
	Resolver *Resolver
	Recorder Recorder
	Pages    Pages

	Hosts *hosts.Current // whose links are served where; nil = the default domain's at every host

	Pictures *Pictures // answer "/{code}/qr"; nil = not a path

	// Transport is the value of Strict-Transport-Security; "" = none.
	Transport string

	Clients clientaddr.Rule // whose X-Forwarded-For is believed
	// CountryHeader is the name of the header in which proxies that Clients trusts state the
	// visitor's country; "" = none.
	CountryHeader string

	Unknown *Budget      // of unknown codes; nil = no bound
	Log     *slog.Logger // nil = discard
}

// Handler answers visitors over net/http. It wants the path as it was sent: behind
// an http.ServeMux, which redirects "//host" to "/host" by itself, it would not be
// asked.
type Handler struct {
	// Set once in NewHandler.
	resolver *Resolver
	recorder Recorder
	hosts    *hosts.Current
	clients  clientaddr.Rule
	country  string    // the canonical name of the header; "" = none
	budget   *Budget   // nil = no bound
	pictures *Pictures // nil = no QR codes
	log      *slog.Logger
	bodies   *bodies
	values   values

	visits sync.Pool // *visit

	answered [problems]atomic.Uint64 // answers that were no redirect
	unserved atomic.Uint64           // requests for links at hosts that are not served
}

// NewHandler returns a Handler; Resolver, Recorder and Pages are required.
func NewHandler(cfg HandlerConfig) (*Handler, error) {
	if cfg.Resolver == nil || cfg.Recorder == nil || cfg.Pages == nil {
		return nil, errors.New("redirect: expected a resolver, a recorder and pages")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	b, err := newBodies(cfg.Pages)
	if err != nil {
		return nil, err
	}
	return &Handler{
		resolver: cfg.Resolver, recorder: cfg.Recorder, hosts: cfg.Hosts,
		clients: cfg.Clients, country: http.CanonicalHeaderKey(cfg.CountryHeader), budget: cfg.Unknown, pictures: cfg.Pictures, log: cfg.Log, bodies: b, values: newValues(cfg.Pages.Policy(), cfg.Transport),
		visits: sync.Pool{New: func() any { return new(visit) }},
	}, nil
}

// ServeHTTP answers one request and then, if the answer could be written, records
// the click. "/{code}/qr", which the lane leaves to net/http, is not a visit (qr.go).
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if code, ok := pictured(r); ok && h.pictures != nil {
		h.serveQR(w, r, code)
		return
	}
	flags := flagsOf(r)
	q := Request{
		Method: r.Method, Query: r.URL.RawQuery, Accept: r.Header["Accept"], Agent: first(r.Header, "User-Agent"),
		Preview: flags&(clicks.Head|clicks.Prefetch) != 0, Client: h.client(r),
	}
	code := link.Code(strings.TrimPrefix(r.URL.Path, "/"))
	place := h.hosts.Load().Find(r.Host)
	if !place.Configured() {
		q.UnconfiguredHost = r.Host
	}
	out := h.Answer(r.Context(), place, code, q)
	if h.Metered(out, code) {
		out = h.Meter(r.Context(), out, q.Client)
	}
	if out.Warned {
		flags |= clicks.Warned
	}
	if h.write(w, r, out) && out.Click != 0 {
		h.record(r, q.Client, place, code, out.Click, flags)
	}
}

// client returns the address of a request's client, proxies considered.
func (h *Handler) client(r *http.Request) netip.Addr {
	return h.clients.Of(clientaddr.Peer(r.RemoteAddr), r.Header["X-Forwarded-For"])
}

// countryOf returns the country that a trusted proxy states; zero where it states none, or several.
func (h *Handler) countryOf(r *http.Request) (code [2]byte) {
	if h.country == "" {
		return code
	}
	values := r.Header[h.country]
	if len(values) != 1 || !h.clients.Trusts(clientaddr.Peer(r.RemoteAddr)) {
		return code
	}
	return clicks.ParseCountry(values[0])
}

// write writes the answer and reports whether it left this process.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, out Outcome) bool {
	header := w.Header()
	h.values.fill(header, out)
	if out.Problem == NoProblem {
		w.WriteHeader(out.Status)
	} else {
		b := h.bodies.of(out)
		header["Content-Length"] = b.length
		w.WriteHeader(out.Status)
		if r.Method != http.MethodHead {
			if _, err := w.Write(b.bytes); err != nil {
				return false
			}
		}
	}
	// net/http writes after the handler unless it is flushed: a click counts only
	// when its answer left. A wrapped writer without FlushError is trusted.
	if f, ok := w.(interface{ FlushError() error }); ok {
		return f.FlushError() == nil
	}
	return true
}

// Hosts returns the table of hosts in force.
func (h *Handler) Hosts() *hosts.Table { return h.hosts.Load() }

// Answer decides about a request for code, and logs why an answer is a 5xx.
func (h *Handler) Answer(ctx context.Context, p hosts.Match, code link.Code, q Request) Outcome {
	if !p.Served() {
		h.answered[NotFound].Add(1)
		h.unserved.Add(1)
		return Unknown(q)
	}
	out, err := h.resolver.Resolve(ctx, link.Key{Domain: p.Domain(), Code: code}, q, time.Now())
	if err != nil {
		h.report(ctx, out, err)
	}
	if out.Problem != NoProblem {
		h.answered[out.Problem].Add(1)
	}
	return out
}

// Answered returns how often p was the answer to a visit. What Meter then refused counts as
// what it was before.
func (h *Handler) Answered(p Problem) uint64 { return h.answered[p].Load() }

// UnservedHosts returns how many requests for links came to hosts that are not served.
func (h *Handler) UnservedHosts() uint64 { return h.unserved.Load() }

// report logs why an answer is a 5xx. An unavailable store shows in the metrics; a
// line for each of its visitors would fill the disk.
func (h *Handler) report(ctx context.Context, out Outcome, err error) {
	level := slog.LevelDebug
	if out.Status == http.StatusInternalServerError {
		level = slog.LevelError
	}
	h.log.LogAttrs(ctx, level, "redirect failed", slog.Int("status", out.Status), slog.Any("err", err))
}

// Peek returns what a visitor of code at the host of r would see, without a
// visit: no click is counted or spent, and no query is forwarded. NoProblem means that
// the link leads to the Outcome's Location, be it its fallback; then the target is the
// link's. Like any other answer about an unknown code it is charged to the network.
func (h *Handler) Peek(r *http.Request, code link.Code) (link.Target, Outcome) {
	q := Request{Method: r.Method, Accept: r.Header["Accept"], Client: h.client(r)}
	place := h.hosts.Load().Find(r.Host)
	var t link.Target
	out, err := Unknown(q), error(nil)
	if place.Served() {
		t, out, err = h.resolver.Peek(r.Context(), link.Key{Domain: place.Domain(), Code: code}, q, time.Now())
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

// Source finds targets. link.ErrNotFound is only ever the store's own word; any
// other error means that the store was unavailable, and is answered 503.
type Source interface {
	Lookup(ctx context.Context, k link.Key) (link.Target, error)
}

// Recorder takes clicks. The byte slices of the Raw are valid during the call
// only. Record never blocks and never allocates; kept is false when the click was
// dropped because the ring is full, which the Recorder itself counts.
type Recorder interface {
	Record(c *clicks.Raw) (kept bool)
}

// Pages writes the answers that people read. The package decides when; internal/web has
// their looks.
type Pages interface {
	// Page returns the whole page of a problem. The destination is "" but on the warning
	// page, and untrusted: it is shown as text. Onward is the destination of the link
	// on that page, a path and query of this host; "" = it has none. No page
	// follows it automatically.
	Page(p Problem, status int, destination, onward string) ([]byte, error)
	// Policy is the Content-Security-Policy of every page.
	Policy() string
}

// visit is the scratch space of one click: a Recorder takes bytes, and a pooled
// buffer turns the strings of net/http into bytes without an allocation each.
type visit struct {
	raw clicks.Raw
	buf []byte
}

// maxScratch keeps a request with monstrous headers from staying in the pool.
const maxScratch = 16 << 10

// record records the click of an answered request.
func (h *Handler) record(r *http.Request, client netip.Addr, p hosts.Match, code link.Code, outcome clicks.Outcome, flags clicks.Flags) {
	v, _ := h.visits.Get().(*visit)
	v.raw = clicks.Raw{
		Time: time.Now().UnixMilli(), Domain: p.Bytes(), Outcome: outcome, Flags: flags,
		Addr: client, Country: h.countryOf(r),
	}
	if !link.ValidCode(code) {
		code = "" // a path, of any length, is not a code
	}
	v.fill(string(code), first(r.Header, "User-Agent"), first(r.Header, "Referer"), first(r.Header, "Accept-Language"), r.URL.RawQuery)
	h.recorder.Record(&v.raw)
	v.raw = clicks.Raw{}
	if cap(v.buf) <= maxScratch {
		h.visits.Put(v)
	}
}

// fill copies the texts into one buffer, which grows at most once.
func (v *visit) fill(code, agent, referrer, language, query string) {
	n := len(code) + len(agent) + len(referrer) + len(language) + len(query)
	if cap(v.buf) < n {
		v.buf = make([]byte, 0, max(n, 1024))
	}
	v.buf = v.buf[:0]
	v.raw.Code = v.add(code)
	v.raw.UserAgent = v.add(agent)
	v.raw.Referrer = v.add(referrer)
	v.raw.Language = v.add(language)
	v.raw.Query = v.add(query)
}

func (v *visit) add(s string) []byte {
	from := len(v.buf)
	v.buf = append(v.buf, s...)
	return v.buf[from:len(v.buf):len(v.buf)]
}

// first is Header.Get for a name in canonical form.
func first(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func flagsOf(r *http.Request) clicks.Flags {
	var f clicks.Flags
	if r.Method == http.MethodHead {
		f |= clicks.Head
	}
	if prefetches(r.Header) {
		f |= clicks.Prefetch
	}
	if ViaQR(r.URL.RawQuery) {
		f |= clicks.ViaQR
	}
	return f
}

// prefetches reports whether the browser fetches ahead of its user:
// "Sec-Purpose: prefetch;prerender", or "Purpose" and "X-Moz" before it existed.
func prefetches(h http.Header) bool {
	for _, name := range [...]string{"Sec-Purpose", "Purpose", "X-Moz"} {
		if slices.ContainsFunc(h[name], AnnouncesPrefetch) {
			return true
		}
	}
	return false
}

// ViaQR reports whether a raw query has the trigger that a printed code carries.
func ViaQR[T ~string | ~[]byte](query T) bool {
	for from := 0; from <= len(query)-len(qrPair); {
		if string(query[from:from+len(qrPair)]) == qrPair &&
			(from+len(qrPair) == len(query) || query[from+len(qrPair)] == '&') {
			return true
		}
		for from < len(query) && query[from] != '&' {
			from++
		}
		from++
	}
	return false
}

// AnnouncesPrefetch reports whether the value of a Sec-Purpose, Purpose or X-Moz
// field announces a fetch ahead of the user.
func AnnouncesPrefetch[T ~string | ~[]byte](value T) bool {
	end := 0
	for end < len(value) && value[end] != ';' {
		end++
	}
	start := 0
	for start < end && (value[start] == ' ' || value[start] == '\t') {
		start++
	}
	for end > start && (value[end-1] == ' ' || value[end-1] == '\t') {
		end--
	}
	for _, kind := range [...]string{"prefetch", "prerender", "preview"} {
		if equalFold(value[start:end], kind) {
			return true
		}
	}
	return false
}

// equalFold compares with a word of small letters.
func equalFold[T ~string | ~[]byte](s T, word string) bool {
	if len(s) != len(word) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}
