package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"curt/internal/link"
)

// Metrics and traces name pages by these patterns: nothing that a visitor chose, and no
// code, is among them.
func TestPagesSayWhichTheyAre(t *testing.T) {
	s := newSite(t)
	s.put(t, "secret", func(*link.Link) {})
	var file string
	for part := range strings.SplitSeq(s.do(t, "GET", "/", "").Body.String(), `"`) {
		if strings.HasPrefix(part, "/static/") {
			file = part
		}
	}
	asked := map[string]string{
		"/": "/{$}", "/?secret": "/{$}", "/secret+": "/{code}+", "/unknown+": "/{code}+", "/secret/stats": "/{code}/stats",
		"/secret/stats?days=7": "/{code}/stats", "/report?code=secret": "/report", "/appeal?token=secret": "/appeal", file: "/static/{file}",
		"/app": "/app/{path...}", "/app/secret?q=secret": "/app/{path...}",
	}
	methods := map[string]string{"GET": "GET ", "HEAD": "GET ", "POST": "POST ", "DELETE": "", "BREW": ""}
	for target, pattern := range asked {
		for method, prefix := range methods {
			if got, want := s.patternOf(t, method, target), prefix+pattern; got != want {
				t.Errorf("%s %s is %q, want %q", method, target, got, want)
			}
		}
	}
	for _, target := range []string{"/nothing/here", "/static/other", "/secret"} {
		if got := s.patternOf(t, "GET", target); got != "" {
			t.Errorf("%s is no page, and is called %q", target, got)
		}
	}
}

// patternOf returns what the pages note of a request.
func (s site) patternOf(t *testing.T, method, target string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	r.Host = "curt.test"
	s.pages.ServeHTTP(httptest.NewRecorder(), r)
	return r.Pattern
}
