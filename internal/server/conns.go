package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"curt/internal/clientaddr"
	"curt/internal/connlimit"
	"curt/internal/lane"
)

const (
	// apiShare is the part of CURT_MAX_CONNECTIONS that a listener of the API's own may hold:
	// programs keep few, and a proxy in front of many people some hundred.
	apiShare = 4
	// leastAPI is for low limits: a dashboard opens six.
	leastAPI = 16
	// adminConns is how many the operator's listener may hold; who scrapes and probes keeps
	// a few. They come out of the descriptors that are kept back (conns_unix.go).
	adminConns = 32
)

// rooms is how many connections the main listener and one of the API's own may hold, whose
// descriptors both must fit below the limit.
func (s *Server) rooms() (public, api int) {
	public = s.config.MaxConnections
	if s.bound.api == nil {
		return maxConns(public), 0
	}
	api = max(public/apiShare, leastAPI)
	if all := maxConns(public + api); all < public+api {
		api = max(all/(apiShare+1), 1)
		public = all - api
	}
	return public, api
}

// room is the main listener's.
func (s *Server) room(ctx context.Context) int {
	connections, _ := s.rooms()
	if connections < s.config.MaxConnections {
		s.log.InfoContext(ctx, "the descriptor limit lowers CURT_MAX_CONNECTIONS", slog.Int("connections", connections))
	}
	return connections
}

// bounded is a front of net/http alone whose connections have a limit.
func bounded(h *http.Server, nl net.Listener, limit int, clients clientaddr.Rule) (front, *connlimit.Listener) {
	l := connlimit.NewListener(nl, limit, clients)
	l.Guard(h)
	return front{h, l}, l
}

// asLane gives a listener's counters in the lane's terms: all its connections are at net/http.
func asLane(l *connlimit.Listener) func() lane.Stats {
	return func() lane.Stats {
		s := l.Stats()
		return lane.Stats{Foreign: s.Open, Accepted: s.Accepted, Refused: s.Refused, Evicted: s.Evicted}
	}
}

// countAPI offers the counters of the API's own listener.
func (s *Server) countAPI(stats func() connlimit.Stats) {
	m := s.metrics
	m.Gauge("curt_api_connections", "Open connections of the API's own listener.", func() float64 { return float64(stats().Open) })
	m.Counter("curt_api_refused_total", "Connections of the API's own listener for which there was no room.", func() uint64 { return stats().Refused })
	m.Counter("curt_api_evicted_total", "Connections of the API's own listener closed to make room.", func() uint64 { return stats().Evicted })
}
