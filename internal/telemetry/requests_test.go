package telemetry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"curt/internal/telemetry"
)

// TestStrangersAddNoSeries: whatever the method, path, host or status, the labels are
// those of the routes.
func TestStrangersAddNoSeries(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/links/{code}", func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(r.Header.Get("X-Status"), &status)
		w.WriteHeader(status)
	})
	mux.HandleFunc("/v1/links/{code}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) })
	mux.HandleFunc("/", http.NotFound)
	m := telemetry.New("x")
	h := m.Requests(nil)(mux)
	for i := range 2000 {
		for _, method := range []string{"GET", "HEAD", fmt.Sprintf("BREW%d", i)} {
			for _, path := range []string{"/v1/links/", "/elsewhere", "/v1/links/%0a\"}", "//"} {
				r := httptest.NewRequest(method, fmt.Sprintf("%s%d", path, i), nil)
				r.Host = fmt.Sprintf("h%d.example\"", i)
				r.Header.Set("X-Status", fmt.Sprint(200+i%400))
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	series := regexp.MustCompile(`(?m)^curt_api_answers_total\{class="([^"]*)",method="([^"]*)",route="([^"]*)"\}`).FindAllStringSubmatch(w.Body.String(), -1)
	if len(series) != strings.Count(w.Body.String(), "\ncurt_api_answers_total{") || len(series) < 3 || len(series) > 16 {
		t.Errorf("%d series: %v", len(series), series)
	}
	for _, s := range series {
		if !slices.Contains([]string{"2xx", "3xx", "4xx", "5xx"}, s[1]) || !slices.Contains([]string{"GET", "other"}, s[2]) ||
			!slices.Contains([]string{"/v1/links/{code}", "other"}, s[3]) {
			t.Errorf("a series of a stranger: %v", s)
		}
	}
}
