package redirect_test

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/internal/cache/cachetest"
	"curt/internal/link"
	"curt/internal/qr"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
)

// drawing is a configuration that answers "/{code}/qr".
func drawing() redirect.HandlerConfig {
	return redirect.HandlerConfig{Pictures: &redirect.Pictures{
		Drawer: qr.NewDrawer(),
		Text:   func(k link.Key) string { return qr.Text("https://go.example/" + string(k.Code)) },
	}}
}

// standings are links in every state, with what "/{code}/qr" answers.
func standings() map[string]struct {
	target link.Target
	status int
	kind   string
} {
	past, future := now().Add(-time.Hour).UnixMilli(), time.Now().Add(time.Hour).UnixMilli()
	return map[string]struct {
		target link.Target
		status int
		kind   string
	}{
		"live":          {link.Target{Destination: dest}, 200, ""},
		"kept308":       {link.Target{Destination: dest, Redirect: 308}, 200, ""},
		"limited":       {link.Target{Destination: dest, Limited: true}, 200, ""},
		"not-yet":       {link.Target{Destination: dest, Starts: future}, 404, "not-found"},
		"expired":       {link.Target{Destination: dest, Expires: past}, 410, "expired"},
		"exhausted":     {link.Target{Destination: dest, Limited: true, Exhausted: true}, 410, "exhausted"},
		"disabled":      {link.Target{Destination: dest, Status: link.Disabled}, 410, "disabled"},
		"fallback":      {link.Target{Destination: dest, Expires: past, Fallback: back}, 200, ""},
		"disabled-fall": {link.Target{Destination: dest, Status: link.Disabled, Fallback: back}, 410, "disabled"},
		"warn-fall":     {link.Target{Destination: dest, Expires: past, Safety: link.Warn, Fallback: back}, 403, "warning"},
		"deleted":       {link.Target{Status: link.Deleted}, 410, "deleted"},
		"warn":          {link.Target{Destination: dest, Safety: link.Warn}, 403, "warning"},
		"quarantined":   {link.Target{Destination: dest, Safety: link.Quarantined}, 403, "warning"},
		"blocked":       {link.Target{Destination: dest, Safety: link.Blocked}, 403, "blocked"},
		"legal":         {link.Target{Destination: dest, Safety: link.Legal}, 451, "legal"},
		"blocked-gone":  {link.Target{Status: link.Deleted, Safety: link.Blocked}, 410, "deleted"},
		"blocked-fall":  {link.Target{Destination: dest, Safety: link.Blocked, Fallback: back}, 403, "blocked"},
		"loop":          {link.Target{Destination: dest, Loops: true}, 508, "loop"},
		"broken":        {link.Target{Destination: "javascript:alert(1)"}, 500, "broken-link"},
		"long-and-live": {link.Target{Destination: "https://example.com/" + strings.Repeat("a", 8000)}, 200, ""},
	}
}

func TestQRFollowsTheTable(t *testing.T) {
	s, rec := cachetest.NewSource(), &recorder{}
	for code, tt := range standings() {
		s.Put(key(code), tt.target)
	}
	s.SetLeft(key("limited"), 1)
	h := newHandler(t, drawing(), s, rec)
	for code, tt := range standings() {
		for _, accept := range []string{browser, program} {
			got := serve(h, "GET", "/"+code+"/qr?format=svg", map[string]string{"Accept": accept})
			media, body := got.Header().Get("Content-Type"), got.Body.String()
			want := "application/problem+json"
			switch {
			case tt.status == 200:
				want = "image/svg+xml"
			case accept == browser:
				want = "text/html; charset=utf-8"
			}
			if got.Code != tt.status || media != want {
				t.Errorf("%s: %d %s, want %d %s", code, got.Code, media, tt.status, want)
			}
			if want == "application/problem+json" && !strings.Contains(body, `"/problems/`+tt.kind+`"`) {
				t.Errorf("%s: %s", code, body)
			}
			if tt.status != 200 && (got.Header().Get("Cache-Control") != "no-store" || strings.Contains(body, dest)) {
				t.Errorf("%s: %v %s", code, got.Header(), body)
			}
		}
	}
	if n, err := s.Spend(t.Context(), key("limited"), 1); n != 1 || err != nil {
		t.Errorf("a picture spent a click: %d %v", n, err)
	}
	if got := rec.all(); len(got) > 0 {
		t.Errorf("%d clicks of pictures", len(got))
	}
}

func TestQRIsAskedForLikeThis(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest})
	h := newHandler(t, drawing(), s, &recorder{})
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/abc/qr", 200},
		{"HEAD", "/abc/qr", 200},
		{"GET", "/%61bc/qr", 200},
		{"POST", "/abc/qr", 405},
		{"GET", "/abc/qr/", 404},
		{"GET", "/abc/QR", 404},
		{"GET", "/abc%2Fqr", 404},
		{"GET", "/abc%2fqr", 404},
		{"GET", "/abc/%71r", 404},
		{"GET", "//qr", 404},
		{"GET", "/qr", 404},
		{"GET", "/qr/qr", 404},
		{"GET", "/abc//qr", 404},
		{"GET", "//abc/qr", 404},
		{"GET", "/abc/x/qr", 404},
		{"GET", "/abc/qr/qr", 404},
		{"GET", "/ABC/qr", 404},
		{"GET", "/" + strings.Repeat("a", 65) + "/qr", 404},
		{"GET", "/abc/qr?qr=1", 400},
		{"GET", "/abc/qr?format=gif", 400},
		{"GET", "/abc/qr?size=1000000000", 400},
		{"GET", "/abc/qr?fg=fff%22%3E%3Cscript%3E", 400},
		{"GET", "/abc/qr?%zz", 400},
		{"GET", "/abc/qr?fg=ffffff&bg=ffffff", 400},
		{"HEAD", "/abc/qr?size=1", 400},
		{"GET", "/no-such/qr?size=1", 404},
	} {
		got := serve(h, tt.method, "https://go.example"+tt.path, nil)
		if got.Code != tt.status {
			t.Errorf("%s %s: %d, want %d: %s", tt.method, tt.path, got.Code, tt.status, got.Body)
		}
		if tt.status == 400 && (got.Header().Get("Cache-Control") != "no-store" || strings.Contains(got.Body.String(), "script")) {
			t.Errorf("%s %s: %v %s", tt.method, tt.path, got.Header(), got.Body)
		}
		if tt.method == "HEAD" && (got.Body.Len() > 0 || got.Header().Get("Content-Length") == "0") {
			t.Errorf("%s %s: %d bytes, %v", tt.method, tt.path, got.Body.Len(), got.Header())
		}
	}
	if got := serve(newHandler(t, redirect.HandlerConfig{}, s, &recorder{}), "GET", "/abc/qr", nil); got.Code != 404 {
		t.Errorf("without pictures: %d", got.Code)
	}
}

func TestQRHasItsHeaders(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest})
	h := newHandler(t, drawing(), s, &recorder{})
	svg := serve(h, "GET", "/abc/qr", nil)
	picture := serve(h, "GET", "/abc/qr", map[string]string{"Accept": "image/png"})
	if _, err := png.Decode(bytes.NewReader(picture.Body.Bytes())); err != nil {
		t.Error(err)
	}
	for media, got := range map[string]http.Header{"image/svg+xml": svg.Header(), "image/png": picture.Header()} {
		for name, want := range map[string]string{
			"Content-Type": media, "Cache-Control": "public, max-age=300", "X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex",
			"Content-Security-Policy": qr.ContentSecurityPolicy, "Vary": "Accept",
		} {
			if got.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", media, name, got.Get(name), want)
			}
		}
	}
	tag := svg.Header().Get("Etag")
	if tag == "" || tag == picture.Header().Get("Etag") {
		t.Errorf("ETag %q of SVG, %q of PNG", tag, picture.Header().Get("Etag"))
	}
	again := serve(h, "GET", "/abc/qr", map[string]string{"If-None-Match": "W/" + tag})
	if again.Code != 304 || again.Body.Len() > 0 || again.Header().Get("Etag") != tag {
		t.Errorf("%d %v", again.Code, again.Header())
	}
	s.Put(key("abc"), link.Target{Status: link.Deleted})
	if dead := serve(h, "GET", "/abc/qr", map[string]string{"If-None-Match": tag}); dead.Code != 410 {
		t.Errorf("a dead link's picture is said to be fresh: %d", dead.Code)
	}
}

func TestQROfUnknownCodesIsMetered(t *testing.T) {
	cfg := drawing()
	cfg.Unknown = redirect.NewBudget(ratelimit.NewMemory(), ratelimit.Per(2, time.Hour))
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest})
	h := newHandler(t, cfg, s, &recorder{})
	var got []int
	for i := range 4 {
		got = append(got, serve(h, "GET", fmt.Sprintf("/none%d/qr", i), nil).Code)
	}
	if fmt.Sprint(got) != "[404 404 429 429]" || serve(h, "GET", "/abc/qr", nil).Code != 200 {
		t.Errorf("%v", got)
	}
}

func TestQRWithoutTheStoreIs503(t *testing.T) {
	s := cachetest.NewSource()
	s.SetDown(errAway)
	got := serve(newHandler(t, drawing(), s, &recorder{}), "GET", "/abc/qr", nil)
	if got.Code != 503 || got.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", got.Code, got.Header())
	}
}

func TestQRTextHasTheTrigger(t *testing.T) {
	_, query, _ := strings.Cut(qr.Text("https://go.example/abc"), "?")
	if !redirect.ViaQR(query) {
		t.Errorf("%q is no trigger", query)
	}
}
