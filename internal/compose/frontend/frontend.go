// Package frontend opens what a server shows: redirects, the API and pages, with who may use them.
// handler.go puts these together for each socket.
package frontend

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"time"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/bodies"
	"curt/internal/clicks/useragent"
	"curt/internal/clientaddr"
	"curt/internal/compose"
	"curt/internal/compose/condition"
	"curt/internal/compose/judging"
	"curt/internal/compose/pipeline"
	"curt/internal/compose/stores"
	"curt/internal/httpapi"
	"curt/internal/httpapi/health"
	"curt/internal/link"
	"curt/internal/qr"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
	"curt/internal/telemetry"
	"curt/internal/web"
)

// Parts are the capabilities that a frontend stands on.
type Parts struct {
	Stores   *stores.Stores
	Cache    *stores.Cache
	Pipeline *pipeline.Pipeline
	Judging  *judging.Judging // nil = there is no API
	Probes   *condition.Probes
	Report   func(time.Time) health.Health
}

// Frontend is what a server shows. Its fields are set in Open.
type Frontend struct {
	env      *compose.Env
	parts    Parts
	Clients  clientaddr.Rule // whose addresses proxies may state
	pages    *web.Pages
	Visitors *redirect.Handler
	Limits   *redirect.Limits // nil = no bound, as below
	unknown  *redirect.Budget
	drawer   *qr.Drawer                      // one for visitors and programs, so that both together are bounded
	counted  func(http.Handler) http.Handler // has answers in metrics and traces

	// Of a server with the API.
	api    http.Handler // nil = there is none
	people web.Config
	keys   *auth.Keys
	shares *auth.Shares
	live   *analytics.Live
	bodies *bodies.Budget
}

// Open opens what the roles show.
func Open(ctx context.Context, env *compose.Env, p Parts) (*Frontend, *compose.Capability, error) {
	f := &Frontend{
		env: env, parts: p, Clients: clientaddr.New(env.Trusted...), drawer: qr.NewDrawer(), counted: env.Metrics.Requests(env.Traces.Tracer()),
	}
	c := &compose.Capability{Name: "frontend", Metrics: f.count}
	var err error
	if f.pages, err = web.NewPages(); err != nil {
		return nil, c, err
	}
	if f.Visitors, err = f.newVisitors(c); err != nil {
		return nil, c, err
	}
	if !env.Roles.API {
		return f, c, nil
	}
	if f.api, err = f.newAPI(ctx, c); err != nil {
		return nil, c, err
	}
	c.Run("keys", f.keys.Run)
	c.Run("live counts", f.live.Run)
	if f.people, err = f.forPeople(); err != nil {
		return nil, c, err
	}
	if f.people.Dashboard, err = web.NewDashboard(); err != nil {
		return nil, c, err
	}
	if !f.people.Dashboard.Built() {
		env.Log.InfoContext(ctx, "this build has no dashboard: run make build with Node.js 20.19 or newer")
	}
	f.api = f.boosted(f.counted(f.api))
	return f, c, nil
}

// EndStreams ends answers that last until their client leaves.
func (f *Frontend) EndStreams() {
	if f.live != nil {
		f.live.Close()
	}
}

// newVisitors returns the handler of every path that is no route.
func (f *Frontend) newVisitors(c *compose.Capability) (*redirect.Handler, error) {
	key, err := f.parts.Stores.Derive("curt warning pages")
	if err != nil {
		return nil, err
	}
	passes, err := redirect.NewPasses(key)
	if err != nil {
		return nil, err
	}
	names, err := f.parts.Stores.BucketKey()
	if err != nil {
		return nil, err
	}
	if t := f.parts.Stores.NewThrottle(c, "unknown", f.env.Unknown); t != nil {
		f.unknown = redirect.NewBudget(ratelimit.Named{Throttle: t, Key: names}, *f.env.Unknown)
	}
	if v := f.env.Visits; v.Network != nil || v.Link != nil {
		f.Limits = &redirect.Limits{Network: f.parts.Stores.NewThrottle(c, "network", v.Network), Link: f.parts.Stores.NewThrottle(c, "link", v.Link), Key: names}
	}
	resolver, err := redirect.NewResolver(redirect.ResolverConfig{
		Source: f.parts.Cache, Spender: f.parts.Stores.Links, IsBot: useragent.NewClassifier().IsBot, Passes: passes, Limits: f.Limits,
	})
	if err != nil {
		return nil, err
	}
	return redirect.NewHandler(redirect.HandlerConfig{
		Resolver: resolver, Recorder: f.parts.Pipeline.Ring, Pages: f.pages, Hosts: f.env.Hosts,
		Clients: f.Clients, CountryHeader: f.env.Config.CountryHeader, Unknown: f.unknown, Log: f.env.Log, Transport: f.env.HSTS(),
		Pictures: &redirect.Pictures{Drawer: f.drawer, Text: func(k link.Key) string { return qr.Text(f.env.Hosts.Load().ShortURL(k)) }},
	})
}

// newAPI returns the handler of the API, and adds the loops of its jobs.
func (f *Frontend) newAPI(ctx context.Context, c *compose.Capability) (http.Handler, error) {
	var err error
	if f.keys, err = f.newKeys(ctx); err != nil {
		return nil, err
	}
	cursorKey, err := f.parts.Stores.Derive("curt cursors")
	if err != nil {
		return nil, err
	}
	queued, err := f.newJobs(c)
	if err != nil {
		return nil, err
	}
	stats := f.parts.Pipeline.Stats()
	f.shares = auth.NewShares(f.parts.Stores.Accounts.Shares, f.parts.Stores.Accounts.Keys, rand.Reader)
	f.bodies = bodies.New(bodies.Config{Metrics: f.env.Metrics.Registerer()})
	f.live = analytics.NewLive(stats)
	return httpapi.New(httpapi.Config{
		Links: f.parts.Judging.Links, Stats: stats, Clicks: f.parts.Pipeline.RawClicks(), Live: f.live, Auth: f.keys, Keys: f.keys, Shares: f.shares, Hosts: f.env.Hosts,
		Jobs: f.parts.Stores.Accounts.Jobs, Queued: queued, Moderator: f.parts.Judging.Moderator, Lists: f.parts.Judging.Lists, Review: f.parts.Judging.Review, Health: f.parts.Report, ClientAddr: f.clientAddr(), Places: f.places(),
		CursorKey: cursorKey, Drawer: f.drawer, Bodies: f.bodies, Unknown: f.unknown, Yielder: f.env.Background, Log: f.env.Log,
	})
}

// places returns what tells of the data of places; nil where there is none.
func (f *Frontend) places() func() (time.Time, string) {
	if f.env.Places == nil {
		return nil
	}
	return func() (time.Time, string) { return f.env.Places.Built(), f.env.Attribution() }
}

// clientAddr returns what finds the address of a request's client.
func (f *Frontend) clientAddr() func(*http.Request) netip.Addr {
	return func(r *http.Request) netip.Addr {
		return f.Clients.Of(clientaddr.Peer(r.RemoteAddr), r.Header.Values("X-Forwarded-For"))
	}
}

// forPeople is what pages need; each socket adds what it shows.
func (f *Frontend) forPeople() (web.Config, error) {
	key, err := f.parts.Stores.Derive("curt statistics pages")
	return web.Config{
		Pages: f.pages, Visitors: f.Visitors, Links: f.parts.Judging.Links, Auth: f.keys, Keys: f.keys, Shares: f.shares, Review: f.parts.Judging.Review, Bodies: f.bodies,
		Stats: f.parts.Pipeline.Stats(), Drawer: f.drawer, EntryKey: key, Attribution: f.env.Attribution(), Log: f.env.Log,
		Hosts: f.env.Hosts, ClientAddr: f.clientAddr(),
	}, err
}

// newKeys takes the admin key that is set, or the one in the data folder, where the
// first start writes it.
func (f *Frontend) newKeys(ctx context.Context) (*auth.Keys, error) {
	var anonymous []auth.Scope
	if allowed := f.env.Config.Anonymous; (allowed != nil && *allowed) || (allowed == nil && f.env.Loopback) {
		anonymous = append(anonymous, auth.LinksWrite)
	}
	key := f.env.AdminKey
	if key == "" {
		var err error
		if key, err = f.ownKey(ctx); err != nil {
			return nil, err
		}
	}
	return auth.NewKeys(auth.KeysConfig{AdminKey: key, Anonymous: anonymous, Store: f.parts.Stores.Accounts.Keys, Log: f.env.Log})
}

func (f *Frontend) ownKey(ctx context.Context) (string, error) {
	path := filepath.Join(f.env.Config.Data, "admin.key")
	key, made, err := auth.LoadOrCreateAdminKey(path, rand.Reader)
	if err != nil {
		return "", err
	}
	if made {
		f.env.Log.InfoContext(ctx, "admin key written", slog.String("file", path))
	}
	exposed, err := auth.KeyFileExposed(path)
	if exposed {
		f.env.Log.WarnContext(ctx, "admin key is readable by other users, run chmod 600", slog.String("file", path))
	}
	return key, err
}

// count registers how visits ended that were not redirected.
func (f *Frontend) count(m *telemetry.Metrics) {
	if f.unknown != nil {
		m.Counter("curt_unknown_refused_total", "Requests for unknown codes answered 429 because their network requested too many.", f.unknown.Refused)
	}
	if f.Limits != nil {
		for by, name := range map[redirect.Bound]string{redirect.ByNetwork: "network", redirect.ByLink: "link"} {
			m.CounterOf("curt_redirects_limited_total", "Redirects answered 429 because of CURT_REDIRECT_LIMIT, by bound.",
				"by", name, func() uint64 { return f.Limits.Refused(by) })
		}
	}
	for _, p := range redirect.Problems() {
		m.CounterOf("curt_redirect_problems_total", "Visits that were not redirected, by problem type.",
			"problem", p.Name(), func() uint64 { return f.Visitors.Answered(p) })
	}
	m.Counter("curt_redirect_strange_hosts_total", "Requests for links on unconfigured hosts, answered 404.", f.Visitors.UnservedHosts)
}
