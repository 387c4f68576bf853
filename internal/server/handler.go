package server

import (
	"net/http"

	"curt/internal/httpapi"
	"curt/internal/web"
)

// pages are the paths of one segment that are no links. The lane leaves them to
// net/http.
func pages() []string { return []string{"healthz", "readyz"} }

// routes sends a request to the API, a probe, a page or a link. It is no ServeMux,
// because that answers unclean paths with redirects of its own, and on this host only
// links redirect. Without an API its paths are links that nobody has.
func (s *Server) routes(api http.Handler, people *web.Handler, links http.Handler) http.Handler {
	pages := s.processors.during(people)
	return s.health.closeWhileDraining(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p := r.URL.Path; {
		case api != nil && httpapi.Serves(r):
			api.ServeHTTP(w, r)
		case p == "/healthz" && isRead(r):
			s.health.live(w, r)
		case p == "/readyz" && isRead(r):
			s.health.ready(w, r)
		case people.Serves(r):
			pages.ServeHTTP(w, r)
		default:
			links.ServeHTTP(w, r)
		}
	}))
}

// apiRoutes is the API on a listener of its own.
func (s *Server) apiRoutes(api http.Handler, people *web.Handler) http.Handler {
	return s.routes(api, people, http.NotFoundHandler())
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// adminRoutes adds the probes to metrics and profiles.
func (s *Server) adminRoutes() http.Handler {
	mux := s.metrics.Handler()
	mux.HandleFunc("GET /healthz", s.health.live)
	mux.HandleFunc("GET /readyz", s.health.ready)
	return mux
}
