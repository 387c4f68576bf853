package web_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"curt/internal/web"
)

const dashboardPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html"

// builtDashboard is what `make web` leaves, in small.
func builtDashboard() fstest.MapFS {
	return fstest.MapFS{
		"dist/.keep":                   {},
		"dist/index.html":              {Data: []byte("<!doctype html><title>curt</title>")},
		"dist/index.html.br":           {Data: []byte("page in br")},
		"dist/index.html.gz":           {Data: []byte("page in gzip")},
		"dist/assets/index-abc.js":     {Data: []byte("plain script")},
		"dist/assets/index-abc.js.br":  {Data: []byte("script in br")},
		"dist/assets/index-abc.js.gz":  {Data: []byte("script in gzip")},
		"dist/assets/small-abc.css":    {Data: []byte("p{}")},
		"dist/assets/picture-abc.svg":  {Data: []byte("<svg/>")},
		"dist/assets/unknown-abc.wasm": {Data: []byte{0}},
	}
}

func TestTheDashboardIsServed(t *testing.T) {
	s := newSite(t)
	const hashed, asked = "public, max-age=31536000, immutable", "no-cache"
	for _, c := range []struct{ path, accept, media, encoding, body, cache string }{
		{"/app/", "", "text/html; charset=utf-8", "", "<!doctype", asked},
		{"/app/", "gzip, deflate, br, zstd", "text/html; charset=utf-8", "br", "page in br", asked},
		{"/app/index.html", "gzip", "text/html; charset=utf-8", "gzip", "page in gzip", asked},
		{"/app/links?q=%3Cscript%3E", "gzip", "text/html; charset=utf-8", "gzip", "page in gzip", asked},
		{"/app/links/a%2Fb/../%00", "gzip", "text/html; charset=utf-8", "gzip", "page in gzip", asked},
		{"/app/assets/index-abc.js", "gzip;q=1.0, br;q=0", "text/javascript; charset=utf-8", "gzip", "script in gzip", hashed},
		{"/app/assets/index-abc.js", "GZIP ; Q=0.5", "text/javascript; charset=utf-8", "gzip", "script in gzip", hashed},
		{"/app/assets/index-abc.js", "*", "text/javascript; charset=utf-8", "br", "script in br", hashed},
		{"/app/assets/index-abc.js", "*;q=0", "text/javascript; charset=utf-8", "", "plain script", hashed},
		{"/app/assets/index-abc.js", "br;q=0, *", "text/javascript; charset=utf-8", "gzip", "script in gzip", hashed},
		{"/app/assets/index-abc.js", "identity, br;q=none", "text/javascript; charset=utf-8", "", "plain script", hashed},
		{"/app/assets/small-abc.css", "gzip, br", "text/css; charset=utf-8", "", "p{}", hashed},
		{"/app/assets/picture-abc.svg", "", "image/svg+xml", "", "<svg/>", hashed},
		{"/app/assets/unknown-abc.wasm", "", "application/octet-stream", "", "\x00", hashed},
	} {
		w := s.do(t, http.MethodGet, c.path, "", "Accept-Encoding: "+c.accept)
		h := w.Header()
		if w.Code != 200 || !strings.HasPrefix(w.Body.String(), c.body) || h.Get("Content-Type") != c.media || h.Get("Content-Encoding") != c.encoding ||
			h.Get("Cache-Control") != c.cache || h.Get("Vary") != "Accept-Encoding" || h.Get("Content-Security-Policy") != dashboardPolicy ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%+v: %d %q %v", c, w.Code, w.Body, h)
			continue
		}
		again := s.do(t, http.MethodGet, c.path, "", "Accept-Encoding: "+c.accept, "If-None-Match: "+h.Get("Etag"))
		if again.Code != http.StatusNotModified || again.Body.Len() != 0 || again.Header().Get("Content-Security-Policy") != dashboardPolicy {
			t.Errorf("%+v again: %d %q", c, again.Code, again.Body)
		}
		head := s.do(t, http.MethodHead, c.path, "", "Accept-Encoding: "+c.accept)
		if head.Code != 200 || head.Body.Len() != 0 || head.Header().Get("Content-Length") != h.Get("Content-Length") {
			t.Errorf("HEAD %+v: %d %q", c, head.Code, head.Body)
		}
	}
	plain, small := s.do(t, http.MethodGet, "/app/", ""), s.do(t, http.MethodGet, "/app/", "", "Accept-Encoding: br")
	if plain.Header().Get("Etag") == small.Header().Get("Etag") {
		t.Error("two encodings have one ETag")
	}
}

func TestWhatIsNoFileOfTheDashboard(t *testing.T) {
	s := newSite(t)
	if w := s.do(t, http.MethodGet, "/app?q=a", ""); w.Code != http.StatusPermanentRedirect || w.Header().Get("Location") != "/app/?q=a" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	for _, path := range []string{"/app/assets/index-old.js", "/app/assets/index-abc.js.br", "/app/assets/"} {
		if w := s.do(t, http.MethodGet, path, ""); w.Code != http.StatusNotFound || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	for _, path := range []string{"/app", "/app/", "/app/assets/index-abc.js"} {
		if w := s.do(t, http.MethodPost, path, "a=b"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d %v", path, w.Code, w.Header())
		}
	}
}

// The way to it is on the first page, where there is one.
func TestHomeLeadsToTheDashboard(t *testing.T) {
	none := func(p *parts) { p.Dashboard = web.ReadDashboard(t, fstest.MapFS{"dist/.keep": {}}) }
	for name, c := range map[string]struct {
		change func(*parts)
		want   bool
	}{"open": {func(*parts) {}, true}, "without the API": {func(p *parts) { p.API = false }, false}, "not built": {none, false}} {
		page := newSite(t, c.change).do(t, http.MethodGet, "/", "").Body.String()
		if strings.Contains(page, `href="/app/"`) != c.want {
			t.Errorf("%s: %s", name, page)
		}
	}
}

// TestWhereTheDashboardIs: where the API is, and not under names that are for links.
func TestWhereTheDashboardIs(t *testing.T) {
	s := newSite(t)
	if w := s.do(t, http.MethodGet, "/app/", "", "Host: go.example"); w.Code == http.StatusOK {
		t.Errorf("under a name for links: %d", w.Code)
	}
	public := newSite(t, func(p *parts) { p.API = false })
	for _, path := range []string{"/app", "/app/", "/app/assets/index-abc.js"} {
		if w := public.do(t, http.MethodGet, path, ""); w.Code == http.StatusOK || w.Code == http.StatusPermanentRedirect {
			t.Errorf("%s without the API: %d", path, w.Code)
		}
	}
	apart := newSite(t, func(p *parts) { p.Public = false })
	if w := apart.do(t, http.MethodGet, "/app/", "", "Host: 192.0.2.7:8081"); w.Code != http.StatusOK {
		t.Errorf("on a listener of its own: %d", w.Code)
	}
	none := newSite(t, func(p *parts) { p.Dashboard = web.ReadDashboard(t, fstest.MapFS{"dist/.keep": {}}) })
	w := none.do(t, http.MethodGet, "/app/", "")
	if d := check(t, w); w.Code != http.StatusNotFound || text(d.all("h1")[0]) != "No dashboard" {
		t.Errorf("of a build without it: %d %s", w.Code, w.Body)
	}
}

func TestTheBuiltDashboardCanBeRead(t *testing.T) {
	if _, err := web.NewDashboard(); err != nil {
		t.Error(err)
	}
}
