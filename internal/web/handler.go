package web

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/bodies"
	"curt/internal/hosts"
	"curt/internal/link"
	"curt/internal/qr"
	"curt/internal/redirect"
	"curt/internal/review"
	"curt/internal/shorten/linkservice"
)

// Config is what [New] needs. Everything but Bodies, Challenge and Now is required.
type Config struct {
	Pages     *Pages
	Dashboard *Dashboard
	Visitors  *redirect.Handler // says what a Host is and where links lead
	Links     *linkservice.Service
	Auth      auth.Authenticator
	Keys      *auth.Keys // normally Auth itself
	Shares    *auth.Shares
	Review    *review.Service
	Stats     analytics.Reader
	Drawer    *qr.Drawer
	Log       *slog.Logger

	// EntryKey signs the cookies that open statistics. It stays the same over restarts,
	// or they end early. At least 16 bytes.
	EntryKey []byte

	// Attribution is the sentence that is shown below countries; "" = none.
	Attribution string

	// Hosts are those of this service, for short URLs and callers without a key.
	Hosts *hosts.Current

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

// Handler serves the pages, each group of them by a type of its own.
type Handler struct {
	*site

	home      *homePages
	forms     *reviewForms
	stats     *statsPages
	dashboard *dashboardPages
	ofLinks   *LinkPages
}

// minEntryKey is the fewest bytes of a key that cannot be guessed.
const minEntryKey = 16

// New returns a Handler.
func New(cfg Config) (*Handler, error) {
	if cfg.Pages == nil || cfg.Dashboard == nil || cfg.Visitors == nil || cfg.Links == nil || cfg.Auth == nil || cfg.Keys == nil || cfg.Shares == nil || cfg.Review == nil || cfg.Stats == nil || cfg.Drawer == nil || cfg.Log == nil ||
		cfg.Hosts == nil || cfg.ClientAddr == nil || len(cfg.EntryKey) < minEntryKey {
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
	ofLinks, err := NewLinkPages(LinksConfig{Pages: cfg.Pages, Visitors: cfg.Visitors, Log: cfg.Log, Hosts: cfg.Hosts, Now: cfg.Now})
	if err != nil {
		return nil, err
	}
	common := &site{
		pages: cfg.Pages, log: cfg.Log, hosts: cfg.Hosts, bodies: cfg.Bodies, origins: http.NewCrossOriginProtection(),
		clientAddr: cfg.ClientAddr, api: cfg.API, public: cfg.Public, now: cfg.Now,
	}
	return &Handler{
		site:      common,
		home:      &homePages{site: common, links: cfg.Links, auth: cfg.Auth, drawer: cfg.Drawer, hasDashboard: cfg.API && cfg.Dashboard.Built()},
		forms:     &reviewForms{site: common, reports: cfg.Review.Reports, appeals: cfg.Review.Appeals, challenge: cfg.Challenge, keys: cfg.Keys, domain: cfg.Links.Domain},
		stats:     &statsPages{site: common, entries: entries{cfg.EntryKey}, links: cfg.Links, keys: cfg.Keys, shares: cfg.Shares, reader: cfg.Stats, attribution: cfg.Attribution},
		dashboard: &dashboardPages{site: common, built: cfg.Dashboard},
		ofLinks:   ofLinks,
	}, nil
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
		return "/{$}", h.home.serve
	case p == reportPath:
		return reportPath, h.forms.report
	case p == appealPath:
		return appealPath, h.forms.appeal
	case strings.HasPrefix(p+"/", dashboardPrefix):
		if h.api && h.leads(r) {
			return "/app/{path...}", h.dashboard.serve
		}
	case strings.HasSuffix(p, "/stats"):
		place, code := h.hosts.Load().Find(r.Host), strings.TrimSuffix(p[1:], "/stats")
		if link.ValidCode(code) && r.URL.EscapedPath() == p && (place.Served() || !h.public) {
			return "/{code}/stats", func(w http.ResponseWriter, r *http.Request) {
				h.stats.serve(w, r, link.Key{Domain: place.Domain(), Code: link.Code(code)})
			}
		}
	default:
		return h.ofLinks.route(r)
	}
	return "", nil
}
