package web_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
	"curt/internal/web"
)

// counts is an analytics.Reader that says what it is told.
type counts struct {
	analytics.Reader // panics where pages ask for what they do not show

	totals analytics.Totals
	series func(analytics.Scope, analytics.Step) []analytics.Point
	top    map[clicks.Dimension][]analytics.Row
	err    error
}

func (c *counts) Totals(context.Context, analytics.Scope, time.Time) (analytics.Totals, error) {
	return c.totals, c.err
}

func (c *counts) Series(_ context.Context, s analytics.Scope, step analytics.Step, _ time.Time) ([]analytics.Point, error) {
	if c.series == nil {
		return nil, c.err
	}
	return c.series(s, step), c.err
}

func (c *counts) Top(_ context.Context, _ analytics.Scope, _ int, _ time.Time, dimensions ...clicks.Dimension) (top [][]analytics.Row, err error) {
	for _, d := range dimensions {
		top = append(top, c.top[d])
	}
	return top, c.err
}

// key makes a key and returns its secret.
func (s site) key(t *testing.T, w link.WorkspaceID, scopes ...auth.Scope) (auth.Key, string) {
	t.Helper()
	admin := auth.Principal{KeyID: "admin", Workspace: link.WorkspaceDefault, Scopes: []auth.Scope{auth.Admin}}
	k, secret, err := s.keys.Create(t.Context(), time.Now(), admin, auth.NewKeyRequest{Workspace: w, Name: "test", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

// enter shows a key and returns the cookie that was set, as a browser sends it back.
func (s site) enter(t *testing.T, path, key string) string {
	t.Helper()
	w := s.do(t, "POST", path, encode("key", key))
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != path || w.Body.Len() != 0 {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	c := w.Result().Cookies()
	if len(c) != 1 || !c[0].HttpOnly || !c[0].Secure || c[0].SameSite != http.SameSiteStrictMode || c[0].Path != path || c[0].MaxAge != 3600 || strings.Contains(c[0].Value, key) {
		t.Fatalf("cookies %+v", c)
	}
	return "Cookie: " + c[0].Name + "=" + c[0].Value
}

func (s site) share(t *testing.T, code string, lasts time.Duration) string {
	t.Helper()
	token, _, err := s.shares.Issue(t.Context(), time.Now(), auth.Principal{KeyID: auth.AdminKeyID}, link.Key{Code: link.Code(code)}, link.WorkspaceDefault, lasts)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestStatisticsAreShownBehindAKey(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(l *link.Link) { l.Title = "Spring sale" })
	s.put(t, "other", func(*link.Link) {})
	s.stats.totals = analytics.Totals{Counts: rollup.Counts{Clicks: 1234567, Humans: 1000000}, LastClicked: time.Now()}
	d := s.page(t, 200, "GET", "/abc/stats", "")
	if d.byID("key") == nil || strings.Contains(d.Body.String(), "1,234,567") {
		t.Fatalf("%s", d.Body)
	}
	cookie := s.enter(t, "/abc/stats", adminKey)
	d = s.page(t, 200, "GET", "/abc/stats", "", cookie)
	for _, want := range []string{"1,234,567", "234,567", "Spring sale", "https://example.com/landing", "live", "Last clicked"} {
		if !strings.Contains(text(d.root), want) {
			t.Errorf("the page does not say %q: %s", want, text(d.root))
		}
	}
	// The cookie opens this link only, and is the path's only by the browser's word.
	if d := s.page(t, 200, "GET", "/other/stats", "", cookie); d.byID("key") == nil {
		t.Errorf("one link's cookie opens another's statistics")
	}
	w := s.do(t, "POST", "/abc/stats", encode("leave", "1"), cookie)
	if c := w.Result().Cookies(); w.Code != 303 || len(c) != 1 || c[0].Value != "" || c[0].MaxAge != -1 {
		t.Errorf("leaving: %d %v", w.Code, w.Header())
	}
}

func TestAKeyIsAskedWhatItMay(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(l *link.Link) { l.Title, l.Workspace = "Secret title", "acme" })
	_, reader := s.key(t, "acme", auth.StatsRead)
	_, lister := s.key(t, "acme", auth.LinksRead)
	_, stranger := s.key(t, "other", auth.StatsRead, auth.LinksRead)
	d := s.page(t, 200, "GET", "/abc/stats", "", s.enter(t, "/abc/stats", reader))
	if strings.Contains(text(d.root), "Secret title") || strings.Contains(text(d.root), "example.com") {
		t.Errorf("a key without links:read is shown the link: %s", text(d.root))
	}
	for key, status := range map[string]int{
		lister: 403, stranger: 404, "curt_" + strings.Repeat("x", 30): 401, "hunter2": 401, "": 401, `"><script>alert(1)</script>`: 401,
	} {
		d := s.page(t, status, "POST", "/abc/stats", encode("key", key))
		if attr(d.byID("key"), "aria-invalid") != "true" || text(d.byID("key-error")) == "" || attr(d.byID("key"), "value") != "" || len(d.Result().Cookies()) != 0 {
			t.Errorf("%q: %s", key, d.Body)
		}
	}
	s.page(t, 404, "POST", "/none/stats", encode("key", reader))
	// Without a key nobody learns which codes there are.
	if a, b := s.do(t, "GET", "/abc/stats", ""), s.do(t, "GET", "/xyzzy/stats", ""); strings.ReplaceAll(b.Body.String(), "xyzzy", "abc") != a.Body.String() || a.Code != b.Code {
		t.Errorf("%d %d", a.Code, b.Code)
	}
}

func TestARevokedKeyShowsNothingMore(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(*link.Link) {})
	k, secret := s.key(t, link.WorkspaceDefault, auth.StatsRead)
	cookie := s.enter(t, "/abc/stats", secret)
	s.page(t, 200, "GET", "/abc/stats", "", cookie)
	admin := auth.Principal{KeyID: "admin", Scopes: []auth.Scope{auth.Admin}}
	if err := s.keys.Revoke(t.Context(), admin, k.ID, false); err != nil {
		t.Fatal(err)
	}
	s.page(t, 401, "GET", "/abc/stats", "", cookie)
}

func TestAnEntryEndsAndCannotBeForged(t *testing.T) {
	now := time.Now()
	s := newSite(t, func(p *parts) { p.Now = func() time.Time { return now } })
	s.put(t, "abc", func(*link.Link) {})
	cookie := s.enter(t, "/abc/stats", adminKey)
	shown := func(cookie string) bool {
		d := s.page(t, 200, "GET", "/abc/stats", "", cookie)
		return d.byID("key") == nil
	}
	if !shown(cookie) {
		t.Fatal("a fresh cookie opens nothing")
	}
	for i := len("Cookie: curt_statistics="); i < len(cookie)-1; i++ {
		c := byte('A')
		if cookie[i] == c {
			c = 'B'
		}
		if shown(cookie[:i] + string(c) + cookie[i+1:]) {
			t.Fatalf("changed at %d", i)
		}
	}
	for _, c := range []string{"Cookie: curt_statistics=", cookie + "A", "Cookie: curt_statistics=" + adminKey} {
		if shown(c) {
			t.Errorf("%q opens the statistics", c)
		}
	}
	now = now.Add(time.Hour)
	if shown(cookie) {
		t.Error("the cookie outlives its hour")
	}
}

func TestEntriesComeFromOurOwnPages(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(*link.Link) {})
	body := encode("key", adminKey)
	for _, sent := range []string{body, encode("leave", "1")} {
		for _, headers := range fromElsewhere() {
			if d := s.page(t, 403, "POST", "/abc/stats", sent, headers...); d.Header().Get("Set-Cookie") != "" {
				t.Errorf("%v: the browser was given %s", headers, d.Header().Get("Set-Cookie"))
			}
		}
	}
	s.page(t, 415, "POST", "/abc/stats", body, "Content-Type: text/plain")
	s.page(t, 400, "POST", "/abc/stats", body+"&key=x")
	s.page(t, 405, "PUT", "/abc/stats", body)
	apart := newSite(t, func(p *parts) { p.API = false })
	apart.put(t, "abc", func(*link.Link) {})
	if d := apart.page(t, 200, "GET", "/abc/stats", ""); d.byID("key") != nil {
		t.Error("keys are asked for where the API is not")
	}
	apart.page(t, 403, "POST", "/abc/stats", body)
	apart.page(t, 200, "GET", "/abc/stats?share="+apart.share(t, "abc", time.Hour), "")
}

func TestASharedPageIsReadOnlyAndEnds(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(l *link.Link) { l.Title = "Secret title" })
	s.put(t, "other", func(*link.Link) {})
	s.stats.totals = analytics.Totals{Counts: rollup.Counts{Clicks: 4711}}
	token := s.share(t, "abc", time.Hour)
	d := s.page(t, 200, "GET", "/abc/stats?share="+token, "")
	if !strings.Contains(text(d.root), "4,711") || strings.Contains(text(d.root), "Secret title") || len(d.all("form")) != 0 || d.Header().Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%v %s", d.Header(), text(d.root))
	}
	for _, a := range d.all("a") {
		if href := attr(a, "href"); !strings.Contains(href, "share="+token) {
			t.Errorf("the link %q leaves the share", href)
		}
	}
	s.page(t, 200, "GET", "/abc/stats?share="+token+"&range=48h", "")
	for _, path := range []string{"/other/stats?share=" + token, "/none/stats?share=" + token, "/abc/stats?share=x", "/abc/stats?share=" + token + "A"} {
		s.page(t, 403, "GET", path, "")
	}
	for _, query := range []string{"share=" + token + "&share=x", "share=", "range=1d", "range=", "x=1", "range=30d&range=30d", "%zz", "share=a;b"} {
		s.page(t, 400, "GET", "/abc/stats?"+query, "")
	}
	if err := s.shares.End(t.Context(), link.Key{Code: "abc"}); err != nil {
		t.Fatal(err)
	}
	s.page(t, 403, "GET", "/abc/stats?share="+token, "")
	s.stats.err = analytics.ErrUnavailable
	s.page(t, 503, "GET", "/abc/stats?share="+s.share(t, "abc", time.Hour), "")
	s.stats.err = errors.New("broken")
	s.page(t, 500, "GET", "/abc/stats?share="+s.share(t, "abc", time.Hour), "")
}

// everyStep is a series with a click a step more each.
func everyStep(s analytics.Scope, step analytics.Step) (all []analytics.Point) {
	for at := s.From; at.Before(s.To); at = at.Add(step.Width()) {
		n := uint64(len(all))
		all = append(all, analytics.Point{Start: at, Clicks: 2 * n, Humans: n})
	}
	return all
}

func TestChartsShowEveryStep(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(*link.Link) {})
	s.stats.series = everyStep
	token := s.share(t, "abc", time.Hour)
	for name, steps := range map[string]int{"30d": 30, "48h": 48, "365d": 365} {
		d := s.page(t, 200, "GET", "/abc/stats?share="+token+"&range="+name, "")
		bars, rows := 0, 0
		for n := range d.all("svg")[0].Descendants() {
			if n.Data == "rect" {
				bars++
			}
		}
		for _, n := range d.all("tr") {
			if n.Parent.Data == "tbody" {
				rows++
			}
		}
		if bars != 2*(steps-1) || rows != steps {
			t.Errorf("%s: %d bars, %d rows, want %d steps of which the first is empty", name, bars, rows, steps)
		}
		if label := attr(d.all("svg")[0], "aria-label"); !strings.Contains(label, fmt.Sprintf("peak %d", 2*(steps-1))) {
			t.Errorf("%s: the chart is called %q", name, label)
		}
	}
	s.stats.series = nil
	if d := s.page(t, 200, "GET", "/abc/stats?share="+token, ""); !strings.Contains(text(d.root), "No clicks") {
		t.Errorf("%s", text(d.root))
	}
}

func TestWhatStrangersSentIsShownAsText(t *testing.T) {
	s := newSite(t)
	for i, evil := range hostile() {
		code := fmt.Sprintf("evil%d", i)
		s.put(t, code, func(l *link.Link) {
			l.Title = evil[:min(len(evil), link.MaxTitle)]
			if evil != "" && len(evil) <= link.MaxDestination {
				l.Destination = evil
			}
		})
		s.stats.top = map[clicks.Dimension][]analytics.Row{}
		for d := range clicks.Dimension(clicks.NumDimensions) {
			s.stats.top[d] = []analytics.Row{{Value: evil, Clicks: 7}, {Value: "(other)", Clicks: 3}}
		}
		d := s.page(t, 200, "GET", "/"+code+"/stats", "", s.enter(t, "/"+code+"/stats", adminKey))
		found := 0
		for _, th := range d.all("th") {
			if b := th.FirstChild; b.Type == html.ElementNode && b.Data == "bdi" && text(b) == cmp.Or(web.Text(evil), "(unknown)") {
				found++
			}
		}
		if found != clicks.NumDimensions {
			t.Errorf("%q stands %d times as text: %s", evil, found, d.Body)
		}
		for _, unseen := range []string{"\u202E", "\u2066", "\x00", "\x1B", "\u2028", "\uFEFF"} {
			if strings.Contains(d.Body.String(), unseen) {
				t.Errorf("%q holds %q", evil, unseen)
			}
		}
	}
}
