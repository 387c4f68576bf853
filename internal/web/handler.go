package web

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/bodies"
	"curt/internal/link"
	"curt/internal/qr"
	"curt/internal/redirect"
	"curt/internal/review"
	"curt/internal/shorten"
)

// Config is what [New] needs. Everything but Bodies, Challenge and Now is required.
type Config struct {
	Pages     *Pages
	Dashboard *Dashboard
	Visitors  *redirect.Handler // says what a Host is and where links lead
	Links     *shorten.Services
	Auth      auth.Authenticator
	Keys      *auth.Keys // normally Auth itself
	Shares    *auth.Shares
	Review    *review.Desk
	Stats     analytics.Reader
	Drawer    *qr.Drawer
	Log       *slog.Logger

	// EntryKey signs the cookies that open statistics. It stays the same over restarts,
	// or they end early. At least 16 bytes.
	EntryKey []byte

	// Hosts are the names under which callers without a key may make links.
	Hosts auth.Hosts

	// BaseURL is where visitors reach the default domain, without a slash at the end.
	BaseURL string

	// ShortURL returns what people pass on.
	ShortURL func(link.Key) string

	// ClientAddr returns the address of a request's client, proxies considered.
	ClientAddr func(*http.Request) netip.Addr

	// API says that the listener is one of the API's, on which links may be made and
	// keys be shown.
	API bool
	// Public says that the listener serves links: then names have the pages that are theirs.
	Public bool

	// Bodies is the memory for bodies of requests; nil = one of its own.
	Bodies *bodies.Budget

	// Challenge is what strangers who report or appeal have to pass; nil = nothing.
	Challenge review.Challenge

	// Now returns the time; nil = time.Now.
	Now func() time.Time
}

// Handler serves the pages. Its fields are set once in New.
type Handler struct {
	Config

	origins *http.CrossOriginProtection
	entries entries
	ofLinks *LinkPages
}

// minEntryKey is the fewest bytes of a key that cannot be guessed.
const minEntryKey = 16

// New returns a Handler.
func New(cfg Config) (*Handler, error) {
	if cfg.Pages == nil || cfg.Dashboard == nil || cfg.Visitors == nil || cfg.Links == nil || cfg.Auth == nil || cfg.Keys == nil || cfg.Shares == nil || cfg.Review == nil || cfg.Stats == nil || cfg.Drawer == nil || cfg.Log == nil ||
		cfg.BaseURL == "" || cfg.ShortURL == nil || cfg.ClientAddr == nil || len(cfg.EntryKey) < minEntryKey {
		return nil, errors.New("web: a part is missing")
	}
	if cfg.Challenge == nil {
		cfg.Challenge = review.NoChallenge{}
	}
	if cfg.Bodies == nil {
		cfg.Bodies = bodies.New(bodies.Config{})
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	ofLinks, err := NewLinkPages(LinksConfig{Pages: cfg.Pages, Visitors: cfg.Visitors, Log: cfg.Log, ShortURL: cfg.ShortURL, Now: cfg.Now})
	if err != nil {
		return nil, err
	}
	return &Handler{Config: cfg, origins: http.NewCrossOriginProtection(), entries: entries{cfg.EntryKey}, ofLinks: ofLinks}, nil
}

// Serves reports whether the request is for a page; everything else is the links'. No
// link has such a path.
func (h *Handler) Serves(r *http.Request) bool {
	_, serve := h.route(r)
	return serve != nil
}

// ServeHTTP answers a request that Serves takes.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { answer(w, r, h.route) }

// route returns who answers, and the pattern of such paths; nil = nobody here.
func (h *Handler) route(r *http.Request) (pattern string, serve http.HandlerFunc) {
	p := r.URL.Path
	switch {
	case p == "/":
		if !h.leads(r) {
			return "", nil
		}
		return "/{$}", h.home
	case p == reportPath:
		return reportPath, h.report
	case p == appealPath:
		return appealPath, h.appeal
	case strings.HasPrefix(p+"/", dashboardPrefix):
		if h.API && h.leads(r) {
			return "/app/{path...}", h.dashboard
		}
	case strings.HasSuffix(p, "/stats"):
		place, code := h.Visitors.At(r.Host), strings.TrimSuffix(p[1:], "/stats")
		if link.ValidCode(code) && r.URL.EscapedPath() == p && (place.Served() || !h.Public) {
			return "/{code}/stats", func(w http.ResponseWriter, r *http.Request) {
				h.stats(w, r, link.Key{Domain: place.Domain(), Code: link.Code(code)})
			}
		}
	default:
		return h.ofLinks.route(r)
	}
	return "", nil
}

// leads reports whether the request came under the name of the service, and not under
// one that is for links only.
func (h *Handler) leads(r *http.Request) bool {
	place := h.Visitors.At(r.Host)
	return !h.Public || place.Served() && place.Domain() == ""
}

// write answers with a page that nobody keeps.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, status int, name string, content any) {
	h.Pages.write(w, r, h.Log, status, name, content)
}

// say answers with a page that says one thing.
func (h *Handler) say(w http.ResponseWriter, r *http.Request, status int, title, detail, back string) {
	h.write(w, r, status, "message", message{shell: h.Pages.shell(title), Detail: detail, Status: statusLine(status), Back: back})
}

// methods answers a method that a page with a form does not take.
func (h *Handler) methods(w http.ResponseWriter, r *http.Request) {
	const allow = "GET, HEAD, POST"
	w.Header().Set("Allow", allow)
	h.say(w, r, http.StatusMethodNotAllowed, "Method not allowed", "This page takes "+allow+".", "")
}

// failure logs a failure of the server's own and returns the id that names it.
func (h *Handler) failure(r *http.Request, status int, err error) (id string) {
	if errors.Is(err, context.Canceled) {
		return ""
	}
	id = rand.Text()
	level := slog.LevelWarn
	if status == http.StatusInternalServerError {
		level = slog.LevelError
	}
	h.Log.LogAttrs(r.Context(), level, "page failed", slog.Int("status", status), slog.String("request_id", id), slog.Any("err", err))
	return id
}
