package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"curt/internal/link"
	"curt/internal/redirect"
	"curt/internal/web"
)

// hostile are texts that strangers choose, as the links' addresses hold them when a
// store was filled by somebody else.
func hostile() []string {
	return []string{
		"https://phish.example/login?next=1&x=%22",
		"https://a.example/\"><script>alert(1)</script>",
		"https://a.example/</strong></bdi></p></main><h1>All is well</h1>",
		"https://a.example/'onmouseover='alert(1)",
		"javascript:alert(1)",
		"https://a.example/{{.Title}}&lt;b&gt;<!--",
		"https://a.example/\u202Egpj.exe", "https://a.example/\u2066\u2069\u200F", "https://a.example/\x00\x1B[31m\r\nSet-Cookie: a=b",
		"https://a.example/\xff\xfe", "https://a.example/\u2028\u2029\uFEFF", "data:text/html,<script>alert(1)</script>",
		"", "://", "https://", "https://[", "https://xn--/", "https://" + strings.Repeat("a", 9000),
		"<svg onload=alert(1)>", "<img src=x onerror=alert(1)>", "</title><script>alert(1)</script>", "<style>*{display:none}</style>",
		"-->", "]]>", "&#x3C;script&#x3E;", "<plaintext>", "<base href=//evil.example>", "<meta http-equiv=refresh content=0>",
	}
}

func TestEveryProblemHasAPage(t *testing.T) {
	pages, err := web.NewPages()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range redirect.Problems() {
		made, err := pages.Page(p, p.Status(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		d := check(t, recorded(made))
		if text(d.all("h1")[0]) != p.Title() || text(d.all("title")[0]) != p.Title() || !strings.Contains(text(d.root), p.Detail()) ||
			!strings.Contains(text(d.root), fmt.Sprint(p.Status())) {
			t.Errorf("%s: %s", p.Name(), text(d.root))
		}
	}
}

// recorded is a page with the headers that the links answer it with.
func recorded(page []byte) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	for name, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy, "Cache-Control": "no-store",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
	} {
		w.Header().Set(name, value)
	}
	_, _ = w.Write(page)
	return w
}

func TestTheWarningShowsTheDestinationAsText(t *testing.T) {
	pages, err := web.NewPages()
	if err != nil {
		t.Fatal(err)
	}
	for _, href := range hostile() {
		made, err := pages.Page(redirect.Warning, http.StatusOK, href, "")
		if err != nil {
			t.Fatal(err)
		}
		d := check(t, recorded(made))
		if href == "" {
			continue
		}
		shown := text(d.all("bdi")[0])
		if want := web.Text(href); shown != want {
			t.Errorf("the page shows %q, want %q", shown, want)
		}
		if attr(d.all("bdi")[0], "dir") != "ltr" || len(onwardLinks(d)) != 0 {
			t.Errorf("%q: %s", href, d.Body)
		}
	}
}

// The way past a warning is one link that says where it leads; a page without a warning
// has none, whatever it is given.
func TestTheWarningLeadsOnByOneLink(t *testing.T) {
	pages, err := web.NewPages()
	if err != nil {
		t.Fatal(err)
	}
	for _, href := range hostile() {
		for _, onward := range []string{"/abc?curt_pass=AAAA", "/abc?x=%22%3E%3Cscript%3E&y='\"><b>&curt_pass=-_"} {
			made, err := pages.Page(redirect.Warning, http.StatusOK, href, onward)
			if err != nil {
				t.Fatal(err)
			}
			d := check(t, recorded(made))
			if links := onwardLinks(d); href == "" && len(links) != 0 {
				t.Errorf("nothing is named, and a link leads to %q", attr(links[0], "href"))
			} else if href != "" && (len(links) != 1 || !strings.HasPrefix(attr(links[0], "href"), "/abc?") ||
				!strings.HasSuffix(attr(links[0], "href"), onward[strings.LastIndex(onward, "curt_pass="):]) ||
				!strings.Contains(attr(links[0], "rel"), "noreferrer") || attr(links[0], "target") != "") {
				t.Errorf("%q: %s", href, d.Body)
			}
			if len(d.all("script"))+len(d.all("form"))+len(d.all("iframe")) != 0 {
				t.Errorf("%q: %s", href, d.Body)
			}
			for _, m := range d.all("meta") {
				if attr(m, "http-equiv") != "" {
					t.Errorf("%q: the page goes on by itself: %s", href, d.Body)
				}
			}
		}
	}
}

// onwardLinks are the links of a page but those to forms.
func onwardLinks(d document) (links []*html.Node) {
	for _, a := range d.all("a") {
		if href := attr(a, "href"); href != "/report" && href != "/appeal" {
			links = append(links, a)
		}
	}
	return links
}

// Pages about links that are there lead to the forms about them, and tell these, and
// nobody else, which link it is.
func TestPagesLeadToTheFormsOfStrangers(t *testing.T) {
	s := newSite(t)
	for code, safety := range map[string]link.Safety{"warned": link.Warn, "blocked": link.Blocked, "law": link.Legal} {
		s.put(t, code, func(l *link.Link) { l.Safety = safety })
	}
	s.put(t, "off", func(l *link.Link) { l.Status = link.Disabled })
	for code, want := range map[string]string{"warned": "report appeal", "blocked": "appeal", "law": "appeal", "off": "report", "none": ""} {
		d, got := check(t, s.do(t, "GET", "/"+code, "")), []string{}
		for _, a := range d.all("a") {
			if name := strings.TrimPrefix(attr(a, "href"), "/"); (name == "report" || name == "appeal") && attr(a, "referrerpolicy") == "same-origin" {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s leads to %q, want %q", code, got, want)
		}
	}
}

func TestLinksAnswerWithThesePages(t *testing.T) {
	s := newSite(t)
	s.put(t, "off", func(l *link.Link) { l.Status = link.Disabled })
	w := s.do(t, "GET", "/none.html", "")
	if d := check(t, w); w.Code != 404 || text(d.all("h1")[0]) != redirect.NotFound.Title() {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestFilesAreKeptForGood(t *testing.T) {
	s := newSite(t)
	d := s.page(t, 200, "GET", "/", "")
	var paths []string
	for _, n := range d.all("link") {
		paths = append(paths, attr(n, "href"))
	}
	if len(paths) != 2 {
		t.Fatalf("files %q", paths)
	}
	for i, media := range []string{"text/css; charset=utf-8", "image/svg+xml"} {
		for _, host := range []string{"curt.test", "go.example", "evil.example"} {
			w := s.do(t, "GET", paths[i], "", "Host: "+host)
			if w.Code != 200 || w.Header().Get("Content-Type") != media || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") ||
				w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Body.Len() == 0 {
				t.Errorf("%s at %s: %d %v", paths[i], host, w.Code, w.Header())
			}
		}
		if w := s.do(t, "POST", paths[i], ""); w.Code != 405 {
			t.Errorf("POST %s: %d", paths[i], w.Code)
		}
	}
	for _, path := range []string{"/static/", "/static/curt.css", "/static/../static/x", "/static", "/static/%2e%2e/pages/home.html"} {
		if w := s.do(t, "GET", path, ""); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// FuzzDestination shows whatever a link may hold on the pages that name it.
func FuzzDestination(f *testing.F) {
	pages, err := web.NewPages()
	if err != nil {
		f.Fatal(err)
	}
	for _, href := range hostile() {
		f.Add(href)
	}
	f.Fuzz(func(t *testing.T, href string) {
		made, err := pages.Page(redirect.Warning, http.StatusOK, href, "")
		if err != nil {
			t.Fatal(err)
		}
		if d := check(t, recorded(made)); href != "" && text(d.all("bdi")[0]) != web.Text(href) {
			t.Errorf("the page shows %q, want %q", text(d.all("bdi")[0]), web.Text(href))
		}
	})
}

func TestARedirectPaysNothingForPages(t *testing.T) {
	s := newSite(t)
	r := httptest.NewRequest("GET", "/abcdefg?x=y", nil)
	if n := testing.AllocsPerRun(100, func() { s.pages.Serves(r) }); n != 0 || s.pages.Serves(r) {
		t.Errorf("%v allocations", n)
	}
}
