package telemetry_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"curt/internal/telemetry"
)

func TestMetricsAreReadWhenScraped(t *testing.T) {
	m := telemetry.New("1.2.3")
	dropped := uint64(0)
	m.Counter("curt_clicks_dropped_total", "Clicks dropped.", func() uint64 { return dropped })
	m.Gauge("curt_cache_bytes", "Bytes of cached links.", func() float64 { return 7 })
	dropped = 3
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`curt_build_info{version="1.2.3"} 1`, "curt_clicks_dropped_total 3", "curt_cache_bytes 7", "go_goroutines ",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %q in /metrics", want)
		}
	}
}

func TestProfilesAnswer(t *testing.T) {
	for path, want := range map[string]int{"": 200, "heap": 200, "symbol": 200, "cmdline": 404} {
		w := httptest.NewRecorder()
		telemetry.New("x").Handler().ServeHTTP(w, httptest.NewRequest("GET", "/debug/pprof/"+path, nil))
		if w.Code != want {
			t.Errorf("/debug/pprof/%s: %d, want %d", path, w.Code, want)
		}
	}
}
