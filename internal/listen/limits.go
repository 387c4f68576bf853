package listen

import (
	"net"
	"net/http"

	"curt/internal/clientaddr"
	"curt/internal/connlimit"
	"curt/internal/lane"
	"curt/internal/telemetry"
)

const (
	// apiShare is the part of CURT_MAX_CONNECTIONS that a socket of the API's own may hold:
	// programs keep few connections, and a proxy in front of many people some hundred.
	apiShare = 4
	// leastAPI is for low limits: a dashboard opens six.
	leastAPI = 16
	// adminConns is how many the operator's socket may hold; scrapers and probes keep a few. They
	// come out of the descriptors that are kept back (descriptors.go).
	adminConns = 32
)

// limits are how many connections the public socket and one of the API's own may hold. The
// descriptors of both must fit below the limit of the process.
func (t *Traffic) limits() (public, api int) {
	public = t.cfg.MaxConnections
	if t.cfg.Sockets.api == nil {
		return maxConns(public), 0
	}
	api = max(public/apiShare, leastAPI)
	if all := maxConns(public + api); all < public+api {
		api = max(all/(apiShare+1), 1)
		public = all - api
	}
	return public, api
}

// bounded is a front of net/http alone whose connections have a limit.
func bounded(h *http.Server, nl net.Listener, limit int, clients clientaddr.Rule) (front, *connlimit.Listener) {
	l := connlimit.NewListener(nl, limit, clients)
	l.Guard(h)
	return front{server: h, listener: l}, l
}

// asLane returns a listener's counters in the lane's terms: all its connections are at net/http.
func asLane(l *connlimit.Listener) func() lane.Stats {
	return func() lane.Stats {
		s := l.Stats()
		return lane.Stats{AtHTTP: s.Open, Accepted: s.Accepted, Refused: s.Refused, Evicted: s.Evicted}
	}
}

// countAPI registers the counters of the API's own socket.
func countAPI(m *telemetry.Metrics, stats func() connlimit.Stats) {
	m.Gauge("curt_api_connections", "Open connections of the API listener.", func() float64 { return float64(stats().Open) })
	m.Counter("curt_api_refused_total", "Connections of the API listener rejected because it was full.", func() uint64 { return stats().Refused })
	m.Counter("curt_api_evicted_total", "Connections of the API listener evicted.", func() uint64 { return stats().Evicted })
}

// countLane registers the lane's counters; without one, those of the public socket in the same
// terms.
func countLane(m *telemetry.Metrics, stats func() lane.Stats) {
	m.Gauge("curt_lane_connections", "Open connections in the lane.", func() float64 { return float64(stats().Open) })
	m.Gauge("curt_lane_foreign_connections", "Open connections at net/http.",
		func() float64 { return float64(stats().AtHTTP) })
	m.Counter("curt_lane_accepted_total", "Connections accepted.", func() uint64 { return stats().Accepted })
	m.Counter("curt_lane_handed_over_total", "Connections handed off to net/http.", func() uint64 { return stats().HandedOff })
	m.Counter("curt_lane_taken_back_total", "Connections handed back by net/http.", func() uint64 { return stats().Returned })
	m.Counter("curt_lane_refused_total", "Connections rejected because the server was full.", func() uint64 { return stats().Refused })
	m.Counter("curt_lane_evicted_total", "Connections evicted: unfinished or idle.", func() uint64 { return stats().Evicted })
	m.Counter("curt_lane_late_total", "Connections closed because they were slow or idle.", func() uint64 { return stats().TimedOut })
	m.Counter("curt_lane_panics_total", "Responses that failed because of a panic.", func() uint64 { return stats().Panics })
}
