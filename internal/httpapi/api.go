package httpapi

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/background"
	"curt/internal/bodies"
	"curt/internal/hosts"
	"curt/internal/httpapi/apidocs"
	"curt/internal/httpapi/articles"
	"curt/internal/httpapi/decisions"
	"curt/internal/httpapi/health"
	"curt/internal/httpapi/jobs"
	"curt/internal/httpapi/kernel"
	"curt/internal/httpapi/keys"
	"curt/internal/httpapi/links"
	"curt/internal/httpapi/lists"
	"curt/internal/httpapi/reviews"
	"curt/internal/httpapi/statistics"
	"curt/internal/job"
	modlists "curt/internal/moderation/lists"
	"curt/internal/moderation/moderator"
	"curt/internal/qr"
	"curt/internal/redirect"
	"curt/internal/review"
	"curt/internal/shorten/linkservice"
)

// Config is what [New] needs. Everything but Challenge, Bodies, Unknown, Yielder, Drawer
// and Now is required.
type Config struct {
	Links  *linkservice.Service
	Stats  analytics.Reader
	Clicks analytics.History
	Live   *analytics.Live
	Auth   auth.Authenticator
	Keys   *auth.Keys // to be managed; normally Auth itself
	Shares *auth.Shares
	Review *review.Service
	Jobs   job.Store

	// Queued is called when a job may have been queued; nil = nobody listens.
	Queued func()

	// Challenge is what strangers who report or appeal have to pass; nil = nothing.
	Challenge review.Challenge

	Moderator *moderator.Moderator
	Lists     *modlists.Keeper

	// Health returns how the server does, without waiting for anything.
	Health func(now time.Time) health.Health

	// Places returns the date of the data of places, zero where there is none, and the sentence
	// that has to be shown beside it; nil = places are unknown.
	Places func() (built time.Time, attribution string)

	// ClientAddr returns the address of a request's client, proxies considered.
	ClientAddr func(*http.Request) netip.Addr

	// Hosts are those of this service, for short URLs and callers without a key.
	Hosts *hosts.Current

	// CursorKey signs the cursors of lists. It stays the same over restarts and
	// processes, or walks end early. At least 16 bytes.
	CursorKey []byte

	// Bodies is the memory for bodies of requests; nil = one of its own.
	Bodies *bodies.Budget

	// Unknown bounds how many codes that are none a network may ask for; nil = no bound.
	Unknown *redirect.Budget

	// Yielder schedules the work on large bodies; nil = nothing is scheduled.
	Yielder background.Yielder

	// Drawer draws QR codes; nil = one of its own.
	Drawer *qr.Drawer

	Log *slog.Logger

	// Now returns the time; nil = time.Now.
	Now func() time.Time
}

// minCursorKey is the fewest bytes of a key that cannot be guessed.
const minCursorKey = 16

// New returns the handler of every request that Serves takes.
func New(cfg Config) (http.Handler, error) {
	if len(cfg.CursorKey) < minCursorKey {
		return nil, fmt.Errorf("cursor key: expected at least %d bytes", minCursorKey)
	}
	if cfg.Queued == nil {
		cfg.Queued = func() {}
	}
	if cfg.Drawer == nil {
		cfg.Drawer = qr.NewDrawer()
	}
	if cfg.Challenge == nil {
		cfg.Challenge = review.NoChallenge{}
	}
	mux := http.NewServeMux()
	described := apidocs.Describe(mux, cfg.Hosts.Load().Base())
	schemas := described.OpenAPI().Components.Schemas
	k := kernel.New(kernel.Config{
		Auth: cfg.Auth, ClientAddr: cfg.ClientAddr, Hosts: cfg.Hosts, CursorKey: cfg.CursorKey, Schemas: schemas,
		Bodies: cfg.Bodies, Log: cfg.Log, Now: cfg.Now,
	})
	return routes(k, mux, described, operations(&cfg, kernel.Describer{Schemas: schemas}))
}

// operations lists what the API can do; each package of resources adds its own.
func operations(cfg *Config, d kernel.Describer) []*kernel.Operation {
	l := &links.Links{Service: cfg.Links, Stats: cfg.Stats, Hosts: cfg.Hosts, Unknown: cfg.Unknown, Yielder: background.Or(cfg.Yielder), Drawer: cfg.Drawer}
	st := &statistics.Statistics{Links: l, History: cfg.Clicks, Live: cfg.Live, Shares: cfg.Shares, Key: slices.Clone(cfg.CursorKey)}
	m := &decisions.Moderation{Links: l, Moderator: cfg.Moderator}
	rs := &reviews.Reviews{Links: l, Reviews: cfg.Review, Challenge: cfg.Challenge, Decisions: m}
	ks := &keys.Keys{Keys: cfg.Keys, Links: cfg.Links, Places: cfg.Places}
	all := slices.Concat(
		tagged(kernel.TagLinks, l.Operations(d)...),
		tagged(kernel.TagStatistics, st.Operations(d)...),
		tagged(kernel.TagQR, l.QROperation(d)),
		tagged(kernel.TagJobs, jobs.New(cfg.Jobs, cfg.Links, cfg.Queued).Operations(d)...),
		tagged(kernel.TagKeys, ks.Operations(d)...),
		tagged(kernel.TagReviews, rs.Operations(d)...),
		tagged(kernel.TagModeration, m.Operations(d)...),
		tagged(kernel.TagModeration, (&lists.Lists{Keeper: cfg.Lists, Moderator: cfg.Moderator}).Operations(d)...),
		tagged(kernel.TagServer, health.Operation(d, cfg.Health)),
		tagged(kernel.TagCompatibility, articles.Operations(d, l)...),
	)
	for _, op := range all {
		if op.Anonymous || op.Open {
			d.Problems(op.Responses, http.StatusMisdirectedRequest)
		}
	}
	return all
}

// tagged gives the tag to the operations that have none.
func tagged(tag string, all ...*kernel.Operation) []*kernel.Operation {
	for _, op := range all {
		if op.Tags == nil {
			op.Tags = []string{tag}
		}
	}
	return all
}

// routes puts every operation and every document on a mux, and behind them the
// answers for other paths and methods.
func routes(k *kernel.Kernel, mux *http.ServeMux, described huma.API, operations []*kernel.Operation) (http.Handler, error) {
	methods := map[string][]string{}
	if err := apidocs.NameEnums(described.OpenAPI().Components.Schemas, operations); err != nil {
		return nil, err
	}
	if err := apidocs.ShowExamples(operations); err != nil {
		return nil, err
	}
	for _, op := range operations {
		op.Security = op.Secured()
		described.OpenAPI().AddOperation(&op.Operation)
		described.Adapter().Handle(&op.Operation, func(ctx huma.Context) {
			r, w := humago.Unwrap(ctx)
			k.Run(op, w, r)
		})
		methods[op.Path] = append(methods[op.Path], op.Method)
	}
	for path, serve := range apidocs.Documents(k, described.OpenAPI(), operations) {
		mux.HandleFunc("GET "+path, serve)
		methods[path] = []string{http.MethodGet}
	}
	// Their other methods are those of a link with that code, of a ban with that number, of
	// a review with that code and of a key with that id, which do not exist.
	for _, path := range []string{links.BulkPath, keys.SelfPath, decisions.PreviewPath, reviews.DecisionsPath} {
		delete(methods, path)
	}
	for path, allowed := range methods {
		mux.HandleFunc(path, wrongMethod(k, allowed))
	}
	noRoute := func(w http.ResponseWriter, r *http.Request) { apidocs.NoRoute(k, w, r) }
	mux.HandleFunc("/", noRoute)
	return cleanPaths(mux, noRoute), nil
}

// wrongMethod answers a path that exists for other methods.
func wrongMethod(k *kernel.Kernel, allowed []string) http.HandlerFunc {
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
		k.Fail(w, r, kernel.Refuse(kernel.KindMethod(), "allowed methods: "+allow))
	}
}

// cleanPaths answers paths that the mux would redirect to their clean form: one
// resource has one path, and a redirected POST is a surprise.
func cleanPaths(mux *http.ServeMux, noRoute http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.URL.Path
		if !strings.HasPrefix(p, "/") || strings.Contains(p, "//") || strings.Contains(p, "/.") || r.Method == http.MethodConnect {
			noRoute(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Serves reports whether a request is the API's to answer.
func Serves(r *http.Request) bool {
	p := r.URL.Path
	return strings.HasPrefix(p, apidocs.Prefix) || strings.HasPrefix(p, apidocs.ProblemsPrefix) || articles.Serves(r)
}

// Streams reports whether the answer to a request may last for hours.
func Streams(r *http.Request) bool { return statistics.Streams(r) }
