package server

import (
	"net/http"
	"strings"
)

// routes sends a request to the API, a probe or a link. It is no ServeMux, because
// that answers unclean paths with redirects of its own, and on this host only
// links redirect.
func (s *Server) routes(api, links http.Handler) http.Handler {
	return s.health.closeWhileDraining(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p := r.URL.Path; {
		case strings.HasPrefix(p, "/api/"):
			api.ServeHTTP(w, r)
		case p == "/healthz" && isRead(r):
			s.health.live(w, r)
		case p == "/readyz" && isRead(r):
			s.health.ready(w, r)
		default:
			links.ServeHTTP(w, r)
		}
	}))
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// adminRoutes adds the probes to metrics and profiles.
func (s *Server) adminRoutes() http.Handler {
	mux := s.metrics.Handler()
	mux.HandleFunc("GET /healthz", s.health.live)
	mux.HandleFunc("GET /readyz", s.health.ready)
	return mux
}
