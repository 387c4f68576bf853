package web_test

import (
	"strings"
	"testing"
	"time"

	"curt/internal/link"
)

func TestAPreviewNamesTheDestination(t *testing.T) {
	s := newSite(t)
	s.put(t, "plain", func(*link.Link) {})
	s.put(t, "idn", func(l *link.Link) { l.Destination = "https://xn--80ak6aa92e.com:8443/x" })
	s.put(t, "over", func(l *link.Link) { l.Expires, l.Fallback = time.UnixMilli(1).UTC(), "https://fallback.example/" })
	s.put(t, "once", func(l *link.Link) { l.MaxClicks, l.Destination = 1, "https://example.com/secret" })
	for code, want := range map[string]struct{ host, shown, also string }{
		"plain": {"example.com", "https://example.com/landing?a=b#part", ""},
		"idn":   {"xn--80ak6aa92e.com", "https://xn--80ak6aa92e.com:8443/x", "аррӏе.com"},
		"over":  {"fallback.example", "https://fallback.example/", "has ended and now redirects"},
		"once":  {"example.com", "https://example.com/…", "click limit"},
	} {
		d := s.page(t, 200, "GET", "/"+code+"+", "")
		url := d.all("bdi")[1]
		if text(url) != want.shown || text(url.FirstChild.NextSibling) != want.host {
			t.Errorf("%s: shown %q with host %q", code, text(url), text(url.FirstChild.NextSibling))
		}
		if !strings.Contains(text(d.root), want.also) || strings.Contains(d.Body.String(), "secret") {
			t.Errorf("%s: %s", code, text(d.root))
		}
		if d.Header().Get("X-Robots-Tag") != "noindex" || attr(d.all("a")[0], "href") != "https://curt.test/"+code {
			t.Errorf("%s: %v, leads to %q", code, d.Header(), attr(d.all("a")[0], "href"))
		}
	}
}

func TestAPreviewOfWhatLeadsNowhereIsTheLinksAnswer(t *testing.T) {
	s := newSite(t)
	s.put(t, "late", func(l *link.Link) { l.Expires = time.UnixMilli(1).UTC() })
	s.put(t, "evil", func(l *link.Link) { l.Safety = link.Blocked })
	s.put(t, "warn", func(l *link.Link) { l.Safety = link.Warn })
	s.put(t, "law", func(l *link.Link) { l.Safety = link.Legal })
	s.put(t, "off", func(l *link.Link) { l.Status, l.Fallback = link.Disabled, "https://example.com/back" })
	s.put(t, "soon", func(l *link.Link) { l.Starts = time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond) })
	for code, status := range map[string]int{"none": 404, "late": 410, "off": 410, "evil": 403, "law": 451, "soon": 404, "warn": 200} {
		d := s.page(t, status, "GET", "/"+code+"+", "")
		if strings.Contains(d.Body.String(), "example.com") != (code == "warn") {
			t.Errorf("%s: %s", code, text(d.root))
		}
		w := s.do(t, "GET", "/"+code+"+", "", "Accept: */*")
		if w.Header().Get("Content-Type") != "application/problem+json" || w.Code == 200 {
			t.Errorf("%s: a program gets %d %s", code, w.Code, w.Header())
		}
	}
	s.page(t, 405, "POST", "/late+", "")
	for _, path := range []string{"/+", "/a%2B", "/a+b", "/a+/", "/a++", "/%00+", "/../a+"} {
		if w := s.do(t, "GET", path, ""); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// A link with a warning is not followed to its fallback, and its warning says no more
// of a link with a bound of clicks than its preview would.
func TestAPreviewKeepsTheWarning(t *testing.T) {
	s := newSite(t)
	s.put(t, "over", func(l *link.Link) {
		l.Safety, l.Expires, l.Fallback = link.Warn, time.UnixMilli(1).UTC(), "https://fallback.example/"
	})
	s.put(t, "once", func(l *link.Link) {
		l.Safety, l.MaxClicks, l.Destination = link.Quarantined, 1, "https://example.com/secret"
	})
	for code, want := range map[string]string{"over": "https://fallback.example/", "once": "https://example.com/…"} {
		d := s.page(t, 200, "GET", "/"+code+"+", "")
		if len(d.all("bdi")) != 1 || text(d.all("bdi")[0]) != want || strings.Contains(d.Body.String(), "secret") {
			t.Errorf("%s: %s", code, text(d.root))
		}
	}
}

func TestPreviewsBelongToTheirDomain(t *testing.T) {
	s := newSite(t)
	s.put(t, "here", func(l *link.Link) { l.Key.Domain = "go.example" })
	if d := s.page(t, 200, "GET", "/here+", "", "Host: go.example"); !strings.Contains(text(d.root), "https://go.example/here") {
		t.Errorf("%s", text(d.root))
	}
	s.page(t, 404, "GET", "/here+", "")
	apart := newSite(t, func(p *parts) { p.Public = false })
	if w := apart.do(t, "GET", "/here+", ""); w.Code != 404 {
		t.Errorf("the API's listener shows links: %d", w.Code)
	}
}
