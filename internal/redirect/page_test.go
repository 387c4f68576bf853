package redirect_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"curt/internal/cache/cachetest"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
	"curt/internal/redirect/redirecttest"
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
	put("late", link.Target{Expires: 1})
	put("used", link.Target{Limited: true, Exhausted: true})
	put("off", link.Target{Status: link.Disabled})
	put("dead", link.Target{Status: link.Deleted})
	put("torn", link.Target{Status: link.Deleted, Redirect: link.Redirect(link.UnwrittenUnreadable)})
	put("null", link.Target{Status: link.Deleted, Redirect: link.Redirect(link.UnwrittenInvalid)})
	put("warn", link.Target{Safety: link.Warn})
	put("evil", link.Target{Safety: link.Blocked})
	put("law", link.Target{Safety: link.Legal})
	put("live", link.Target{})
	put("long", link.Target{ForwardQuery: true, Destination: "https://a.example/" + strings.Repeat("x", 8170)})
	put("junk", link.Target{Destination: "javascript:alert(1)"})
	put("loop", link.Target{Loops: true})
	return s, map[redirect.Problem][2]string{
		redirect.NotFound: {"GET", "/none"}, redirect.Expired: {"GET", "/late"},
		redirect.Exhausted: {"GET", "/used"}, redirect.Disabled: {"GET", "/off"}, redirect.Deleted: {"GET", "/dead"},
		redirect.Unreadable: {"GET", "/torn"}, redirect.Unstorable: {"GET", "/null"},
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
		if !strings.Contains(page.Body.String(), "<title>"+p.Type()+"<") || page.Header().Get("Content-Length") != fmt.Sprint(page.Body.Len()) {
			t.Errorf("%s: the page is %s", p.Type(), page.Body)
		}
		for name, want := range map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Robots-Tag": "noindex",
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Vary": "Accept",
			"Content-Security-Policy": redirecttest.Pages{}.Policy(),
		} {
			if got := page.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", p.Type(), name, got, want)
			}
		}
	}
}

func TestOnlyPeopleAreToldWhereAWarningLeads(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("warn"), link.Target{Destination: "https://phish.example/", Safety: link.Warn})
	h := newHandler(t, redirect.HandlerConfig{}, s, &recorder{})
	if w := serve(h, "GET", "http://x/warn", map[string]string{"Accept": browser}); w.Code != 200 || !strings.Contains(w.Body.String(), "phish.example") {
		t.Errorf("a browser gets %d %s", w.Code, w.Body)
	}
	if w := serve(h, "GET", "http://x/warn", map[string]string{"Accept": program}); w.Code != 403 || strings.Contains(w.Body.String(), "phish.example") {
		t.Errorf("a program gets %d %s", w.Code, w.Body)
	}
}

// noPages has no page for one problem.
type noPages struct{ redirecttest.Pages }

func (noPages) Page(p redirect.Problem, _ int, destination, _ string) ([]byte, error) {
	if destination != "" {
		return nil, errAway
	}
	return []byte("page of " + p.Name()), nil
}

func TestAPageThatCannotBeMadeIsTheOneWithoutADestination(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("warn"), link.Target{Destination: dest, Safety: link.Warn})
	h, err := redirect.NewHandler(redirect.HandlerConfig{Resolver: newResolver(t, s), Recorder: &recorder{}, Pages: noPages{}})
	if err != nil {
		t.Fatal(err)
	}
	if w := serve(h, "GET", "http://x/warn", map[string]string{"Accept": browser}); w.Body.String() != "page of warning" {
		t.Errorf("the page is %q", w.Body)
	}
}

func TestALookIsNoVisit(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("once"), link.Target{Destination: dest, Limited: true, ForwardQuery: true})
	s.SetLeft(key("once"), 1)
	s.Put(key("over"), link.Target{Destination: dest, Expires: 1, Fallback: back})
	s.Put(key("warn"), link.Target{Destination: dest, Safety: link.Warn})
	rec := &recorder{}
	h := newHandler(t, redirect.HandlerConfig{}, s, rec)
	for code, want := range map[string]struct {
		problem  redirect.Problem
		location string
	}{
		"once": {redirect.NoProblem, dest}, "over": {redirect.NoProblem, back}, "warn": {redirect.Warning, ""},
		"none": {redirect.NotFound, ""}, "a+b": {redirect.NotFound, ""},
	} {
		r := httptest.NewRequest("GET", "/x?secret=1", nil)
		r.Header.Set("Accept", browser)
		target, out := h.Peek(r, link.Code(code))
		if out.Problem != want.problem || out.Location != want.location || target.Limited != (code == "once") {
			t.Errorf("%s: %+v %+v", code, out, target)
		}
	}
	if n := len(rec.all()); n != 0 {
		t.Errorf("%d clicks were recorded", n)
	}
	if w := serve(h, "GET", "http://x/once", nil); w.Code != 302 {
		t.Errorf("the only click was spent: %d", w.Code)
	}
}
