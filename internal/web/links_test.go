package web_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"curt/internal/hosts/hoststest"
	"curt/internal/link"
	"curt/internal/web"
)

// A listener without an API shows previews and what pages need, and no other page.
func TestThePagesOfLinksAlone(t *testing.T) {
	s := newSite(t)
	s.put(t, "plain", func(*link.Link) {})
	pages, err := web.NewPages()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := web.NewLinkPages(web.LinksConfig{Pages: pages}); err == nil {
		t.Error("parts are missing, and nobody says so")
	}
	alone, err := web.NewLinkPages(web.LinksConfig{
		Pages: pages, Visitors: s.links, Log: slog.New(slog.DiscardHandler),
		Hosts: hoststest.New(t, "https://curt.test"),
	})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://curt.test"+path, nil)
		r.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		alone.ServeHTTP(w, r)
		if served := r.Pattern != ""; served != alone.Serves(r) {
			t.Errorf("%s: served %v", path, served)
		}
		return w
	}
	if w := get("/plain+"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Link preview") {
		t.Errorf("a preview: %d %s", w.Code, w.Body)
	}
	if w := get("/none+"); w.Code != http.StatusNotFound || w.Header().Get("Location") != "" {
		t.Errorf("a preview of nothing: %d", w.Code)
	}
	_, style, _ := strings.Cut(get("/plain+").Body.String(), `href="/static/`)
	style, _, _ = strings.Cut(style, `"`)
	if w := get("/static/" + style); w.Code != http.StatusOK {
		t.Errorf("/static/%s: %d", style, w.Code)
	}
	for _, path := range []string{"/", "/plain", "/plain/stats", "/report", "/appeal", "/app/", "/static/none", "/a%2B", "/+"} {
		if w := get(path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
