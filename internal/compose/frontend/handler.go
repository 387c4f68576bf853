package frontend

import (
	"net"
	"net/http"

	"curt/internal/compose"
	"curt/internal/compose/condition"
	"curt/internal/hosts"
	"curt/internal/httpapi"
	"curt/internal/listen"
	"curt/internal/web"
)

// LonePaths are the paths of one segment that are no links. The lane leaves them to
// net/http.
func LonePaths() []string { return []string{"healthz", "readyz", "app", "report", "appeal"} }

// pages are what people are shown: a web.Handler, or web.LinkPages.
type pages interface {
	http.Handler
	Serves(r *http.Request) bool
}

// routes sends a request to the API, a probe, a page or a link. It is no ServeMux,
// because that answers unclean paths with redirects of its own, and on this host only
// links redirect. Without an API its paths are unknown codes.
func (f *Frontend) routes(api http.Handler, people pages, links http.Handler) http.Handler {
	shown := f.boosted(f.counted(people))
	said, contact := f.env.HSTS(), newSecurityText(f.env.Config.Contacts, f.env.Hosts.Load().Base())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if said != "" {
			w.Header().Set("Strict-Transport-Security", said)
		}
		switch p := r.URL.Path; {
		case p == securityPath && contact != nil:
			contact.ServeHTTP(w, r)
		case api != nil && httpapi.Serves(r):
			api.ServeHTTP(w, r)
		case p == "/healthz" && isRead(r):
			f.parts.Probes.Live(w, r)
		case p == "/readyz" && isRead(r):
			f.parts.Probes.Ready(w, r)
		case people.Serves(r):
			shown.ServeHTTP(w, r)
		default:
			links.ServeHTTP(w, r)
		}
	})
}

// Public returns the handler of the public socket; withAPI says whether the API is there, too.
func (f *Frontend) Public(withAPI bool) (http.Handler, error) {
	withAPI = withAPI && f.api != nil
	shown, err := f.shown(withAPI, f.env.Roles.Redirects)
	if err != nil {
		return nil, err
	}
	var api, links http.Handler = nil, f.Visitors
	if withAPI {
		api = f.api
	}
	if !f.env.Roles.Redirects {
		links = http.NotFoundHandler()
	}
	return f.routes(api, shown, links), nil
}

// API returns the handler of the API's own socket.
func (f *Frontend) API() (http.Handler, error) {
	shown, err := f.shown(true, false)
	if err != nil {
		return nil, err
	}
	return f.routes(f.api, shown, http.NotFoundHandler()), nil
}

// shown are the pages of a socket, which may be the API's, that of links, or both.
func (f *Frontend) shown(api, public bool) (pages, error) {
	if f.api == nil {
		return web.NewLinkPages(web.LinksConfig{Pages: f.pages, Visitors: f.Visitors, Log: f.env.Log, Hosts: f.env.Hosts})
	}
	c := f.people
	c.API, c.Public = api, public
	return web.New(c)
}

// boosted boosts the process while a handler computes, but for answers that last for hours.
func (f *Frontend) boosted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !httpapi.Streams(r) {
			defer f.env.Background.Boost()()
		}
		next.ServeHTTP(w, r)
	})
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// Admin returns the probes to metrics and profiles. A listener that only this
// machine reaches is asked by its own names alone: the pages of a browser beside it are
// strangers', under whatever name they let resolve to it.
func Admin(env *compose.Env, p *condition.Probes, at net.Addr) http.Handler {
	mux := env.Metrics.Handler()
	mux.HandleFunc("GET /healthz", p.Live)
	mux.HandleFunc("GET /readyz", p.ReadyInFull)
	if !listen.IsLoopback(at) {
		return mux
	}
	name, _, _ := net.SplitHostPort(env.Config.AdminListen) // "" is no name
	return ownHostsOnly(func(host string) bool { return env.Hosts.Load().Names().Own(host) || hosts.NewNames(name).Own(host) }, mux)
}

// ownHostsOnly answers 421 to the names of others. Who sends no Host is no browser.
func ownHostsOnly(own func(host string) bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "" && !own(r.Host) {
			http.Error(w, "unknown host: use localhost, an IP address or a host from the settings", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}
