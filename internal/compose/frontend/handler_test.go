package frontend

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"curt/internal/hosts"
	"curt/internal/listen"
)

func TestTheAdminListenerKnowsItsNames(t *testing.T) {
	h := ownHostsOnly(hosts.NewNames("go.example", "metrics.internal").Own, http.NotFoundHandler())
	for host, want := range map[string]int{
		"127.0.0.1:9090": 404, "[::1]:9090": 404, "localhost:9090": 404, "go.example": 404, "metrics.internal:9090": 404, "": 404,
		"evil.example": 421, "evil.example:9090": 421, "localhost.evil.example": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
	}
	for address, want := range map[string]bool{"127.0.0.1": true, "127.3.2.1": true, "::1": true, "0.0.0.0": false, "::": false, "192.0.2.7": false} {
		if listen.IsLoopback(&net.TCPAddr{IP: net.ParseIP(address), Port: 9090}) != want {
			t.Errorf("%s: want %v", address, want)
		}
	}
}
