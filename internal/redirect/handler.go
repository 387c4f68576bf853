package redirect

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"curt/internal/clicks"
	"curt/internal/clientaddr"
	"curt/internal/link"
)

// HandlerConfig says how a Handler serves.
type HandlerConfig struct {
	Resolver *Resolver
	Recorder Recorder
	Pages    Pages

	// Hosts maps canonical hosts (lower-case A-labels, ":port" only where it
	// matters) to the domains whose links they serve. The default domain's own host
	// maps to "".
	Hosts map[string]link.Domain
	// StrictHost answers 404 to hosts that Hosts does not name; otherwise they serve
	// the default domain.
	StrictHost bool
	// Own are hosts that serve the default domain although StrictHost is set and Hosts does
	// not name them, in lower case, without port and final dot; nil = none. No link may lead to
	// one of them, or links could lead in circles.
	Own func(host string) bool

	Pictures *Pictures // answer "/{code}/qr"; nil = that is no path

	// Transport is the value of Strict-Transport-Security; "" = none.
	Transport string

	Clients clientaddr.Rule // whose X-Forwarded-For is believed
	Unknown *Budget         // of unknown codes; nil = no bound
	Log     *slog.Logger    // nil = discard
}

// Handler answers visitors over net/http. It wants the path as it was sent: behind
// an http.ServeMux, which redirects "//host" to "/host" by itself, it would not be
// asked.
type Handler struct {
	// Set once in NewHandler.
	resolver *Resolver
	recorder Recorder
	hosts    hosts
	clients  clientaddr.Rule
	budget   *Budget   // nil = no bound
	pictures *Pictures // nil = no QR codes
	log      *slog.Logger
	bodies   *bodies
	values   values

	visits sync.Pool // *visit

	met     [problems]atomic.Uint64 // answers that were no redirect
	strange atomic.Uint64           // requests for links at hosts that are not served
}

// NewHandler returns a Handler; Resolver, Recorder and Pages are required.
func NewHandler(cfg HandlerConfig) (*Handler, error) {
	if cfg.Resolver == nil || cfg.Recorder == nil || cfg.Pages == nil {
		return nil, errors.New("redirect: a handler needs a resolver, a recorder and pages")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	b, err := newBodies(cfg.Pages)
	if err != nil {
		return nil, err
	}
	return &Handler{
		resolver: cfg.Resolver, recorder: cfg.Recorder, hosts: newHosts(cfg.Hosts, cfg.StrictHost, cfg.Own),
		clients: cfg.Clients, budget: cfg.Unknown, pictures: cfg.Pictures, log: cfg.Log, bodies: b, values: newValues(cfg.Pages.Policy(), cfg.Transport),
		visits: sync.Pool{New: func() any { return new(visit) }},
	}, nil
}

// ServeHTTP answers one request and then, if the answer could be written, records
// the click. "/{code}/qr", which the lane leaves to net/http, is no visit (qr.go).
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
	place := h.At(r.Host)
	if !place.Known() {
		q.Stranger = r.Host
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
	// net/http writes after the handler unless it is told to: a click counts only
	// when its answer left. A wrapped writer that cannot be told is believed.
	if f, ok := w.(interface{ FlushError() error }); ok {
		return f.FlushError() == nil
	}
	return true
}
