package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"curt/internal/analytics"
)

// Numbers from memory say so, and go to nobody who may not read the fresh ones.
func TestStaleStatistics(t *testing.T) {
	s := newService(t, func(p *parts) { p.Stats = analytics.NewRecent(p.Stats) })
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"new"}`)
	s.stats.totals.Clicks, s.stats.totals.Humans = 12, 9
	for _, path := range []string{collection + "/abc/stats?dimensions=country", "/api/v1/stats"} {
		s.do(t, "admin", http.MethodGet, path, "").want(t, http.StatusOK)
	}
	s.stats.err = fmt.Errorf("%w: it is away", analytics.ErrUnavailable)
	for _, path := range []string{collection + "/abc/stats?dimensions=country", "/api/v1/stats"} {
		got := s.do(t, "admin", http.MethodGet, path, "").want(t, http.StatusOK).json(t)
		if got["stale"] != true || got["as_of"] != "2026-06-01T12:00:00Z" || got["total_clicks"] != 12.0 {
			t.Errorf("%s: %v", path, got)
		}
	}
	for _, path := range []string{collection + "/new/stats", collection + "/abc/stats?interval=hour", "/api/v1/stats?workspace_id=other"} {
		r := s.do(t, "admin", http.MethodGet, path, "")
		r.want(t, http.StatusServiceUnavailable).problem(t)
		if r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
	}
	s.do(t, "", http.MethodGet, collection+"/abc/stats?dimensions=country", "").want(t, http.StatusUnauthorized)
	s.do(t, "admin", http.MethodDelete, collection+"/abc", "").want(t, http.StatusNoContent)
	s.do(t, "admin", http.MethodGet, collection+"/abc/stats?dimensions=country", "").want(t, http.StatusNotFound)
}
