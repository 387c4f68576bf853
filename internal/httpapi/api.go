package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/bodies"
	"curt/internal/moderation"
	"curt/internal/qr"
	"curt/internal/redirect"
	"curt/internal/review"
	"curt/internal/shorten"
)

// Config is what [New] needs. Everything but Challenge, Bodies, Unknown, Aside, Drawer
// and Now is required.
type Config struct {
	Links  *shorten.Services
	Stats  analytics.Reader
	Clicks analytics.History
	Live   *analytics.Live
	Auth   auth.Authenticator
	Keys   *auth.Keys // to be managed; normally Auth itself
	Shares *auth.Shares
	Review *review.Desk

	// Challenge is what strangers who report or appeal have to pass; nil = nothing.
	Challenge review.Challenge

	Moderator *moderation.Moderator

	// Health returns how the server does, without waiting for anything.
	Health func(now time.Time) Health

	// ClientAddr returns the address of a request's client, proxies considered.
	ClientAddr func(*http.Request) netip.Addr

	// BaseURL is where visitors reach the default domain, without a slash at the
	// end; its scheme is that of every domain.
	BaseURL string

	// Hosts are further names, beside that of BaseURL, by which callers without a key
	// may call; a port in them is ignored.
	Hosts []string

	// CursorKey signs the cursors of lists. It stays the same over restarts and
	// processes, or walks end early. At least 16 bytes.
	CursorKey []byte

	// Bodies is the memory for bodies of requests; nil = one of its own.
	Bodies *bodies.Budget

	// Unknown bounds how many codes that are none a network may ask for; nil = no bound.
	Unknown *redirect.Budget

	// Aside runs long work where it takes nothing from visitors, and returns when it is done, or
	// panics as it did; nil = where the caller is.
	Aside func(work func())

	// Drawer draws QR codes; nil = one of its own.
	Drawer *qr.Drawer

	Log *slog.Logger

	// Now returns the time; nil = time.Now.
	Now func() time.Time
}

// minCursorKey is the fewest bytes of a key that cannot be guessed.
const minCursorKey = 16

// api is the state that all requests share; set once in New.
type api struct {
	links     *shorten.Services
	stats     analytics.Reader
	clicks    analytics.History
	live      *analytics.Live
	auth      auth.Authenticator
	keys      *auth.Keys
	shares    *auth.Shares
	review    *review.Desk
	moderator *moderation.Moderator
	health    func(now time.Time) Health
	addr      func(*http.Request) netip.Addr
	log       *slog.Logger
	now       func() time.Time
	origins   *http.CrossOriginProtection
	sites     sites
	hosts     auth.Hosts
	cursors   cursors
	mappings  []mapping
	failures  failures
	buffers   *sync.Pool
	bodies    *bodies.Budget
	unknown   *redirect.Budget // nil = no bound
	aside     func(work func())
	large     turn // of lists that are large
	drawer    *qr.Drawer
	schemas   huma.Registry // what the description says, by name
	sifting   chan struct{} // a place for each question with a filter that is answered at once

	challenges review.Challenge
}

// New returns the handler of every request that Serves takes.
func New(cfg Config) (http.Handler, error) {
	base, err := url.Parse(cfg.BaseURL)
	switch {
	case err != nil || base.Host == "" || strings.HasSuffix(cfg.BaseURL, "/"):
		return nil, fmt.Errorf("base URL %q: want one like https://sho.rt, without a slash at the end", cfg.BaseURL)
	case len(cfg.CursorKey) < minCursorKey:
		return nil, fmt.Errorf("cursor key: want at least %d bytes", minCursorKey)
	case cfg.Links == nil || cfg.Stats == nil || cfg.Clicks == nil || cfg.Live == nil || cfg.Auth == nil || cfg.Keys == nil || cfg.Shares == nil || cfg.Moderator == nil || cfg.Review == nil || cfg.Health == nil || cfg.ClientAddr == nil || cfg.Log == nil:
		return nil, errors.New("http api: a part is missing")
	}
	a := &api{
		links: cfg.Links, stats: cfg.Stats, clicks: cfg.Clicks, live: cfg.Live, auth: cfg.Auth, keys: cfg.Keys, shares: cfg.Shares, addr: cfg.ClientAddr, log: cfg.Log, now: cfg.Now,
		moderator: cfg.Moderator, review: cfg.Review, health: cfg.Health, challenges: cfg.Challenge, origins: http.NewCrossOriginProtection(),
		sites:   sites{base: cfg.BaseURL, scheme: base.Scheme, host: base.Host},
		hosts:   auth.NewHosts(append(slices.Clone(cfg.Hosts), base.Host)...),
		cursors: cursors{key: slices.Clone(cfg.CursorKey)}, mappings: mappings(), buffers: newBuffers(), drawer: cfg.Drawer, sifting: make(chan struct{}, 1),
	}
	a.bodies, a.unknown, a.aside, a.large = cfg.Bodies, cfg.Unknown, cfg.Aside, make(turn, 1)
	if a.bodies == nil {
		a.bodies = bodies.New(bodies.Config{})
	}
	if a.aside == nil {
		a.aside = func(work func()) { work() }
	}
	if a.drawer == nil {
		a.drawer = qr.NewDrawer()
	}
	if a.challenges == nil {
		a.challenges = review.NoChallenge{}
	}
	if a.now == nil {
		a.now = time.Now
	}
	return a.routes()
}

// routes puts every operation and every document on a mux, and behind them the
// answers for paths and methods that are none.
func (a *api) routes() (http.Handler, error) {
	mux := http.NewServeMux()
	described := describe(mux, a.sites.base)
	records, err := loadRecordings()
	if err != nil {
		return nil, err
	}
	methods := map[string][]string{}
	a.schemas = described.OpenAPI().Components.Schemas
	operations := a.operations(a.schemas)
	if err := nameEnums(a.schemas, operations); err != nil {
		return nil, err
	}
	for _, op := range operations {
		records.show(op)
		op.Security = op.secured()
		described.OpenAPI().AddOperation(&op.Operation)
		described.Adapter().Handle(&op.Operation, func(ctx huma.Context) {
			r, w := humago.Unwrap(ctx)
			a.run(op, w, r)
		})
		methods[op.Path] = append(methods[op.Path], op.Method)
	}
	for path, serve := range a.documents(described.OpenAPI(), operations) {
		mux.HandleFunc("GET "+path, serve)
		methods[path] = []string{http.MethodGet}
	}
	// Their other methods are those of a link with that code, of a ban with that number, of
	// a review with that code and of a key with that id, which there are none.
	delete(methods, bulkPath)
	delete(methods, selfPath)
	delete(methods, previewPath)
	delete(methods, decisionsPath)
	for path, allowed := range methods {
		mux.HandleFunc(path, a.wrongMethod(allowed))
	}
	mux.HandleFunc("/", a.noRoute)
	return a.cleanPaths(mux), nil
}

// operations lists what the API can do; each file of operations adds its own.
func (a *api) operations(schemas huma.Registry) []*operation {
	d := describer{schemas}
	all := slices.Concat(
		tagged(tagLinks, a.linkOperations(d), a.bulkOperations(d), a.aliasOperations(d)),
		tagged(tagStatistics, []*operation{a.statsOperation(d), a.clicksOperation(d)}, a.liveOperations(d), a.workspaceOperations(d), a.seriesOperations(d), a.shareOperations(d)),
		tagged(tagQR, []*operation{a.qrOperation(d)}),
		tagged(tagKeys, a.keyOperations(d), []*operation{a.selfOperation(d)}),
		tagged(tagReviews, a.reportOperations(d), a.appealOperations(d), a.reviewOperations(d)),
		tagged(tagModeration, a.safetyOperations(d), a.banOperations(d), a.journalOperations(d)),
		tagged(tagServer, []*operation{a.healthOperation(d)}),
		tagged(tagCompatibility, compatOperations(d)),
	)
	for _, op := range all {
		if op.anonymous || op.open {
			d.problems(op.Responses, http.StatusMisdirectedRequest)
		}
	}
	return all
}

// wrongMethod answers a path that exists for other methods.
func (a *api) wrongMethod(allowed []string) http.HandlerFunc {
	set := map[string]bool{}
	for _, method := range allowed {
		set[method] = true
		if method == http.MethodGet {
			set[http.MethodHead] = true
		}
	}
	allow := strings.Join(slices.Sorted(maps.Keys(set)), ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		a.fail(w, r, &refusal{kind: kindMethod(), detail: "this path takes " + allow})
	}
}

func (a *api) noRoute(w http.ResponseWriter, r *http.Request) {
	a.fail(w, r, &refusal{kind: kindNoRoute(), detail: "the API is described at " + docsPath})
}

// cleanPaths answers paths that the mux would redirect to their clean form: one
// resource has one path, and a redirected POST is a surprise.
func (a *api) cleanPaths(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.URL.Path
		if !strings.HasPrefix(p, "/") || strings.Contains(p, "//") || strings.Contains(p, "/.") || r.Method == http.MethodConnect {
			a.noRoute(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
