package redirect_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"curt/internal/cache/cachetest"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
)

// everyProblem returns a source and, for each problem, a request that meets it.
func everyProblem() (*cachetest.Source, map[redirect.Problem][2]string) {
	s := cachetest.NewSource()
	put := func(code string, t link.Target) {
		if t.Destination == "" {
			t.Destination = dest
		}
		s.Put(key(code), t)
	}
	put("soon", link.Target{Starts: time.Now().Add(time.Hour).UnixMilli()})
	put("late", link.Target{Expires: 1})
	put("used", link.Target{Limited: true, Exhausted: true})
	put("off", link.Target{Status: link.Disabled})
	put("dead", link.Target{Status: link.Deleted})
	put("warn", link.Target{Safety: link.Warn})
	put("evil", link.Target{Safety: link.Blocked})
	put("law", link.Target{Safety: link.Legal})
	put("live", link.Target{})
	put("long", link.Target{ForwardQuery: true, Destination: "https://a.example/" + strings.Repeat("x", 8170)})
	put("junk", link.Target{Destination: "javascript:alert(1)"})
	put("loop", link.Target{Loops: true})
	return s, map[redirect.Problem][2]string{
		redirect.NotFound: {"GET", "/none"}, redirect.NotYetActive: {"GET", "/soon"}, redirect.Expired: {"GET", "/late"},
		redirect.Exhausted: {"GET", "/used"}, redirect.Disabled: {"GET", "/off"}, redirect.Deleted: {"GET", "/dead"},
		redirect.Warning: {"GET", "/warn"}, redirect.Blocked: {"GET", "/evil"}, redirect.Legal: {"GET", "/law"},
		redirect.MethodNotAllowed: {"POST", "/live"}, redirect.URITooLong: {"GET", "/long?x=123456789"},
		redirect.BrokenLink: {"GET", "/junk"}, redirect.Loop: {"GET", "/loop"}, redirect.Unavailable: {"GET", "/live"},
		redirect.TooMany: {"GET", "/none"},
	}
}

func TestEveryProblemHasAPageAndADocument(t *testing.T) {
	s, requests := everyProblem()
	h := newHandler(t, redirect.HandlerConfig{}, s, &recorder{})
	types := map[string]bool{}
	for p := redirect.NotFound; p <= redirect.TooMany; p++ {
		request, ok := requests[p]
		if !ok {
			t.Fatalf("%s is met by no request of this test", p.Type())
		}
		s.SetDown(nil)
		if p == redirect.TooMany {
			h = newHandler(t, redirect.HandlerConfig{Unknown: redirect.NewBudget(refuser{}, ratelimit.Per(1, time.Hour))}, s, &recorder{})
		}
		if p == redirect.Unavailable {
			s.SetDown(errAway)
		}
		doc := serve(h, request[0], "http://x"+request[1], map[string]string{"Accept": program})
		var got struct {
			Type, Title, Detail string
			Status              int
		}
		if err := json.Unmarshal(doc.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v in %q", p.Type(), err, doc.Body)
		}
		if got.Type != p.Type() || got.Status != doc.Code || got.Title == "" || got.Detail == "" || types[got.Type] ||
			doc.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %+v", p.Type(), doc.Code, got)
		}
		types[got.Type] = true

		page := serve(h, request[0], "http://x"+request[1], map[string]string{"Accept": browser})
		if page.Code != doc.Code && p != redirect.Warning {
			t.Errorf("%s: the page has status %d, the document %d", p.Type(), page.Code, doc.Code)
		}
		checkPage(t, page, got.Title)
	}
}

// checkPage holds what every page promises: readable by machines that read aloud,
// no script, no style but its own, kept by nobody, framed by nobody.
func checkPage(t *testing.T, w *httptest.ResponseRecorder, title string) {
	t.Helper()
	doc, err := html.Parse(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	text := map[string]string{}
	lang := ""
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		if n.FirstChild != nil {
			text[n.Data] = n.FirstChild.Data
		}
		for _, a := range n.Attr {
			if n.Data == "html" && a.Key == "lang" {
				lang = a.Val
			}
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "href" || a.Key == "src" {
				t.Errorf("attribute %s=%q of %s", a.Key, a.Val, n.Data)
			}
		}
	}
	if lang == "" || count["h1"] != 1 || count["main"] != 1 || text["h1"] != title || text["title"] != title {
		t.Errorf("lang %q, %d h1 %q, title %q; want %q", lang, count["h1"], text["h1"], text["title"], title)
	}
	for _, tag := range []string{"script", "img", "iframe", "link", "a", "form", "object"} {
		if count[tag] != 0 {
			t.Errorf("%d %s in the page", count[tag], tag)
		}
	}
	sum := sha256.Sum256([]byte(text["style"]))
	csp := w.Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"} {
		if !strings.Contains(csp, part) {
			t.Errorf("CSP %q lacks %q", csp, part)
		}
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Robots-Tag": "noindex",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Vary": "Accept",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestTheWarningNamesTheDestinationAsText(t *testing.T) {
	for i, destination := range []string{
		"https://phish.example/login?next=1&x=%22",
		"https://a.example/\"><script>alert(1)</script>",
		"https://a.example/</code></p><h1>All is well</h1>",
		"javascript:alert(1)",
		"https://a.example/{{.Title}}&lt;b&gt;",
	} {
		s := cachetest.NewSource()
		s.Put(key("warn"), link.Target{Destination: destination, Safety: link.Warn})
		h := newHandler(t, redirect.HandlerConfig{}, s, &recorder{})
		w := serve(h, "GET", "http://x/warn", map[string]string{"Accept": browser})
		body := w.Body.String()
		if w.Code != 200 || w.Header().Get("Content-Length") != fmt.Sprint(len(body)) {
			t.Fatalf("%d: status %d", i, w.Code)
		}
		checkPage(t, w, "This link may be harmful")
		doc, err := html.Parse(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		shown := ""
		for n := range doc.Descendants() {
			if n.Type == html.ElementNode && n.Data == "code" && n.FirstChild != nil {
				shown = n.FirstChild.Data
			}
		}
		if shown != destination {
			t.Errorf("the page shows %q, want %q", shown, destination)
		}
		if w := serve(h, "GET", "http://x/warn", map[string]string{"Accept": program}); w.Code != 403 || strings.Contains(w.Body.String(), "example") {
			t.Errorf("a program gets %d %s", w.Code, w.Body)
		}
	}
}
