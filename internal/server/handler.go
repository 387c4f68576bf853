package server

import (
	"net"
	"net/http"
	"net/netip"

	"curt/internal/auth"
	"curt/internal/httpapi"
)

// lonePaths are the paths of one segment that are no links. The lane leaves them to
// net/http.
func lonePaths() []string { return []string{"healthz", "readyz", "app", "report", "appeal"} }

// pages are what people are shown: a web.Handler, or web.LinkPages.
type pages interface {
	http.Handler
	Serves(r *http.Request) bool
}

// routes sends a request to the API, a probe, a page or a link. It is no ServeMux,
// because that answers unclean paths with redirects of its own, and on this host only
// links redirect. Without an API its paths are links that nobody has.
func (s *Server) routes(api http.Handler, people pages, links http.Handler) http.Handler {
	shown := s.processors.during(s.counted(people))
	said, contact := transport(s.config), newSecurityText(s.config.Contacts, s.origin.base)
	return s.health.closeWhileDraining(untilAnswered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if said != "" {
			w.Header().Set("Strict-Transport-Security", said)
		}
		switch p := r.URL.Path; {
		case p == securityPath && contact != nil:
			contact.ServeHTTP(w, r)
		case api != nil && httpapi.Serves(r):
			api.ServeHTTP(w, r)
		case p == "/healthz" && isRead(r):
			s.health.live(w, r)
		case p == "/readyz" && isRead(r):
			s.health.ready(w, r)
		case people.Serves(r):
			shown.ServeHTTP(w, r)
		default:
			links.ServeHTTP(w, r)
		}
	})))
}

// apiRoutes is the API on a listener of its own.
func (s *Server) apiRoutes(api http.Handler, people pages) http.Handler {
	return s.routes(api, people, http.NotFoundHandler())
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// adminRoutes adds the probes to metrics and profiles. A listener that only this
// machine reaches is asked by its own names alone: the pages of a browser beside it are
// strangers', under whatever name they let resolve to it.
func (s *Server) adminRoutes() http.Handler {
	mux := s.metrics.Handler()
	mux.HandleFunc("GET /healthz", s.health.live)
	mux.HandleFunc("GET /readyz", s.health.readyInFull)
	if !isLoopback(s.bound.admin.Addr()) {
		return mux
	}
	name, _, _ := net.SplitHostPort(s.config.AdminListen) // "" is nobody's name
	return ownHostsOnly(auth.NewHosts(append(s.origin.names(), string(s.origin.host), name)...), mux)
}

// ownHostsOnly answers 421 to the names of others. Who sends no Host is no browser.
func ownHostsOnly(own auth.Hosts, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "" && !own.Own(r.Host) {
			http.Error(w, "this host is another's: ask localhost, an address or a name of the settings", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func isLoopback(a net.Addr) bool {
	ap, err := netip.ParseAddrPort(a.String())
	return err == nil && ap.Addr().Unmap().IsLoopback()
}
