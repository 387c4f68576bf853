package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/shorten/create"
)

func TestTheFormMakesALink(t *testing.T) {
	s := newSite(t)
	d := s.page(t, http.StatusOK, "GET", "/", "")
	if f := d.all("form"); len(f) != 1 || attr(f[0], "method") != "post" || attr(f[0], "action") != "/" || d.byID("url") == nil {
		t.Fatalf("no form: %s", d.Body)
	}
	d = s.page(t, http.StatusCreated, "POST", "/", encode("url", "https://bücher.example/a b?q=<x>", "alias", "books", "expiry", "86400"))
	if got := attr(d.byID("short"), "value"); got != "https://curt.test/books" {
		t.Errorf("the field to copy holds %q", got)
	}
	for _, want := range []string{"https://xn--bcher-kva.example/a%20b?q=%3Cx%3E", "bücher.example", "Expires on"} {
		if !strings.Contains(text(d.root), want) {
			t.Errorf("the page does not say %q: %s", want, text(d.root))
		}
	}
	if len(d.all("svg")) != 1 {
		t.Error("no QR code")
	}
	links := s.stored(t)
	if len(links) != 1 || links[0].Key.Code != "books" || links[0].Workspace != link.WorkspaceAnonymous ||
		links[0].Expires.Sub(links[0].Created) != 24*time.Hour {
		t.Errorf("stored %+v", links)
	}
	d = s.page(t, http.StatusCreated, "POST", "/", encode("url", "https://example.com/", "alias", "", "expiry", "0"))
	if got := attr(d.byID("short"), "value"); got != "https://curt.test/c000001" {
		t.Errorf("the field to copy holds %q", got)
	}
}

func TestWhatIsWrongStandsBesideTheField(t *testing.T) {
	s := newSite(t)
	s.put(t, "taken", func(*link.Link) {})
	for _, c := range []struct {
		url, alias, expiry string
		status             int
		field              string
	}{
		{"", "", "0", 400, "url"},
		{"example.com", "", "0", 400, "url"},
		{"javascript:alert(1)", "", "0", 400, "url"},
		{"https://user:secret@example.com/", "", "0", 400, "url"},
		{"https://curt.test/x", "", "0", 400, "url"},
		{"https://example.com/" + strings.Repeat("x", 9000), "", "0", 400, "url"},
		{"https://example.com/\x00", "", "0", 400, "url"},
		{`https://example.com/"><script>alert(1)</script>` + "\n", "", "0", 400, "url"},
		{"https://example.com/", "ab", "0", 400, "alias"},
		{"https://example.com/", `"><script>alert(1)</script>`, "0", 400, "alias"},
		{"https://example.com/", "\u202Eevil", "0", 400, "alias"},
		{"https://example.com/", "taken", "0", 409, "alias"},
		{"https://example.com/", "API", "0", 409, "alias"},
		{"https://example.com/", "", "17", 400, "expiry"},
		{"https://example.com/", "", "-1", 400, "expiry"},
		{"https://example.com/", "", "1e3", 400, "expiry"},
	} {
		d := s.page(t, c.status, "POST", "/", encode("url", c.url, "alias", c.alias, "expiry", c.expiry))
		field := d.byID(c.field)
		if attr(field, "aria-invalid") != "true" || !strings.Contains(attr(field, "aria-describedby"), c.field+"-error") || text(d.byID(c.field+"-error")) == "" {
			t.Errorf("%.60q %q %q: nothing at %s: %s", c.url, c.alias, c.expiry, c.field, d.Body)
		}
		if !strings.HasPrefix(text(d.all("title")[0]), "Error: ") {
			t.Errorf("the title is %q", text(d.all("title")[0]))
		}
		for id, typed := range map[string]string{"url": c.url, "alias": c.alias} {
			// A browser takes line ends out of such a field, and a page cannot hold NUL.
			kept := strings.ReplaceAll(typed, "\x00", "\uFFFD")
			if got := attr(d.byID(id), "value"); got != kept {
				t.Errorf("%s was %.60q and is %.60q", id, typed, got)
			}
		}
	}
	if n := len(s.stored(t)); n != 1 {
		t.Errorf("%d links are stored", n)
	}
}

func TestNoFormFromElsewhereMakesALink(t *testing.T) {
	s := newSite(t)
	body := encode("url", "https://example.com/", "expiry", "0")
	for _, headers := range fromElsewhere() {
		if d := s.page(t, 403, "POST", "/", body, headers...); len(d.all("form")) != 0 {
			t.Errorf("%v: a form", headers)
		}
	}
	for _, c := range []struct {
		status  int
		headers []string
	}{
		{421, []string{"Host: evil.example", "Origin: http://evil.example"}},
		{421, []string{"Host: evil.example"}},
		{415, []string{"Content-Type: text/plain"}},
		{415, []string{"Content-Type: multipart/form-data; boundary=x"}},
		{415, []string{"Content-Type: "}},
		{401, []string{"Authorization: Bearer wrong"}},
	} {
		d := s.page(t, c.status, "POST", "/", body, c.headers...)
		if len(d.all("form")) != 0 && c.status != 401 {
			t.Errorf("%v: a form", c.headers)
		}
	}
	for body, status := range map[string]int{
		body + "&url=https://other.example/": 400, "url=%zz": 400, "url=a;b": 400,
		"url=https://example.com/" + strings.Repeat("x", 70<<10): 413,
	} {
		s.page(t, status, "POST", "/", body)
	}
	// The query is no part of the form.
	s.page(t, 400, "POST", "/?url=https://example.com/", "")
	if n := len(s.stored(t)); n != 0 {
		t.Errorf("%d links are stored", n)
	}
}

func TestBrowsersOfOldMayUseTheForm(t *testing.T) {
	s := newSite(t)
	for _, origin := range []string{"Origin: ", "Origin: http://curt.test", "Origin: https://curt.test"} {
		s.page(t, http.StatusCreated, "POST", "/", encode("url", "https://example.com/"), "Sec-Fetch-Site: ", origin)
	}
}

func TestWhereNobodyMayMakeLinksThereIsNoForm(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*parts)
		host   string
		post   int
	}{
		"a key is wanted":  {func(p *parts) { p.Auth = authtest.Callers{"": {}} }, "curt.test", 403},
		"the API is apart": {func(p *parts) { p.API = false }, "curt.test", 403},
		"another's name":   {func(*parts) {}, "evil.example", 421},
	} {
		s := newSite(t, c.change)
		d := s.page(t, 200, "GET", "/", "", "Host: "+c.host)
		if len(d.all("form")) != 0 || !strings.Contains(text(d.root), "URL shortener") {
			t.Errorf("%s: %s", name, d.Body)
		}
		s.page(t, c.post, "POST", "/", encode("url", "https://example.com/"), "Host: "+c.host)
		if n := len(s.stored(t)); n != 0 {
			t.Errorf("%s: %d links are stored", name, n)
		}
	}
}

func TestOnlyTheDefaultDomainHasAHome(t *testing.T) {
	s := newSite(t)
	if w := s.do(t, "GET", "/", "", "Host: go.example"); w.Code != 404 {
		t.Errorf("a domain for links answers %d", w.Code)
	}
	strict := newSite(t, func(p *parts) { p.strict = true })
	if w := strict.do(t, "GET", "/", "", "Host: evil.example"); w.Code != 404 {
		t.Errorf("a strict host answers %d", w.Code)
	}
	apart := newSite(t, func(p *parts) { p.Public, p.strict = false, true })
	apart.page(t, 200, "GET", "/", "", "Host: 10.0.0.1:8081")
}

// The limit is asked before the form is read.
func TestLimitsHoldForTheForm(t *testing.T) {
	s := newSite(t, func(p *parts) {
		p.create.Plans = create.Plans{auth.PlanAnonymous: {ratelimit.Per(2, time.Minute)}}
	})
	body := encode("url", "https://example.com/")
	s.page(t, 201, "POST", "/", body)
	s.page(t, 201, "POST", "/", body)
	d := s.page(t, 429, "POST", "/", body)
	if d.Header().Get("Retry-After") == "" || !strings.Contains(text(d.root), "Try again in ") {
		t.Errorf("%v %s", d.Header(), text(d.root))
	}
}

func TestAStoreThatIsAwayIsTold(t *testing.T) {
	s := newSite(t)
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	d := s.page(t, 503, "POST", "/", encode("url", "https://example.com/"))
	if d.Header().Get("Retry-After") == "" || !strings.Contains(s.log.String(), "request_id") {
		t.Errorf("%v %s", d.Header(), s.log)
	}
}

func TestHomeTakesItsMethodsOnly(t *testing.T) {
	s := newSite(t)
	for _, method := range []string{"PUT", "DELETE", "OPTIONS", "PATCH"} {
		if d := s.page(t, 405, method, "/", ""); d.Header().Get("Allow") != "GET, HEAD, POST" {
			t.Errorf("%s: Allow %q", method, d.Header().Get("Allow"))
		}
	}
	if w := s.do(t, "HEAD", "/", ""); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d, %d bytes", w.Code, w.Body.Len())
	}
}
