package web_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/html"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/clicks"
	"curt/internal/codegen"
	"curt/internal/hosts"
	"curt/internal/hosts/hoststest"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation/moderator"
	"curt/internal/qr"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
	"curt/internal/review"
	"curt/internal/shorten/linkservice"
	"curt/internal/web"
)

const (
	browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	form    = "application/x-www-form-urlencoded"
	policy  = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

// site is the pages over a memory store, with the links behind them.
type site struct {
	store *linktest.Memory
	pages *web.Handler
	links *redirect.Handler
	log   *bytes.Buffer

	keys   *auth.Keys
	shares *auth.Shares
	stats  *counts
	desk   *review.Service
	mods   *moderator.Moderator
}

// adminKey is the admin key of every site.
const adminKey = "curt_0123456789abcdefghijklmnop"

// parts is what a test may change before a site is put together.
type parts struct {
	web.Config

	create linkservice.Config
	strict bool
}

type counter struct{ n atomic.Int64 }

func (c *counter) Next(context.Context, codegen.Need) (link.Code, error) {
	return link.Code(fmt.Sprintf("c%06d", c.n.Add(1))), nil
}
func (c *counter) Guarantee() codegen.Guarantee { return codegen.Unique }
func (c *counter) Kind() link.CodeKind          { return link.Counted }
func (c *counter) Burned(link.Code)             {}

// nobody fails the test when a visit is recorded.
type nobody struct{ t testing.TB }

func (n nobody) Record(c *clicks.Raw) bool {
	if c.Outcome == clicks.Redirected || c.Outcome == clicks.FellBack {
		n.t.Error("a page was counted as a visit")
	}
	return true
}

func newSite(t testing.TB, change ...func(*parts)) site {
	t.Helper()
	s := site{store: linktest.NewMemory(), log: &bytes.Buffer{}, stats: &counts{}, shares: auth.NewShares(authtest.NewMemoryShares(), authtest.NewMemory(), rand.Reader)}
	pages, err := web.NewPages()
	if err != nil {
		t.Fatal(err)
	}
	named := hosts.Config{Host: "curt.test", Domains: []link.Domain{"go.example"}}
	p := parts{create: linkservice.Config{
		Store: s.store, Codes: &counter{}, Limits: ratelimit.NewMemory(), Hosts: hoststest.Of(t, named), Random: rand.Reader,
	}, Config: web.Config{
		Pages: pages, Dashboard: web.ReadDashboard(t, builtDashboard()), Drawer: qr.NewDrawer(), Log: slog.New(slog.NewTextHandler(s.log, nil)), Public: true, API: true,
		Auth:       authtest.Callers{"": {Scopes: []auth.Scope{auth.LinksWrite}}},
		ClientAddr: func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") },
	}}
	if s.keys, err = auth.NewKeys(auth.KeysConfig{AdminKey: adminKey, Store: authtest.NewMemory()}); err != nil {
		t.Fatal(err)
	}
	p.Keys, p.Shares, p.Stats, p.EntryKey = s.keys, s.shares, s.stats, []byte("sixteen bytes key")
	s.desk, s.mods = newDesk(t, s.store)
	p.Review = s.desk
	for _, f := range change {
		f(&p)
	}
	named.Strict = p.strict
	p.Hosts = hoststest.Of(t, named)
	resolver, err := redirect.NewResolver(redirect.ResolverConfig{Source: s.store, Spender: s.store})
	if err != nil {
		t.Fatal(err)
	}
	s.links, err = redirect.NewHandler(redirect.HandlerConfig{
		Resolver: resolver, Recorder: nobody{t}, Pages: pages, Hosts: p.Hosts,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Visitors, p.Links = s.links, linkservice.New(p.create)
	if s.pages, err = web.New(p.Config); err != nil {
		t.Fatal(err)
	}
	return s
}

// put stores a link as a test wants it.
func (s site) put(t testing.TB, code string, change func(*link.Link)) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	id, err := link.NewID(now, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := link.Link{
		ID: id, Key: link.Key{Code: link.Code(code)}, Destination: "https://example.com/landing?a=b#part", Workspace: link.WorkspaceDefault,
		Status: link.Active, Safety: link.Clean, Redirect: 302, Created: now, Updated: now, Version: 1,
	}
	change(&l)
	if _, err := s.store.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// do sends a request as a browser does; headers are "Name: value".
func (s site) do(t testing.TB, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Host = "curt.test"
	r.Header.Set("Accept", browser)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", form)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
		if value == "" {
			r.Header.Del(name)
		}
	}
	w := httptest.NewRecorder()
	if s.pages.Serves(r) {
		s.pages.ServeHTTP(w, r)
	} else {
		s.links.ServeHTTP(w, r)
	}
	return w
}

// fromElsewhere are the headers of forms that no page of ours sent: as browsers say it, and as
// those of old do, which know the origin alone.
func fromElsewhere() [][]string {
	return [][]string{
		{"Sec-Fetch-Site: cross-site"},
		{"Sec-Fetch-Site: same-site"},
		{"Sec-Fetch-Site: ", "Origin: https://evil.example"},
		{"Sec-Fetch-Site: ", "Origin: https://curt.test.evil.example"},
		{"Sec-Fetch-Site: ", "Origin: null"},
	}
}

// page is do for a page that must have the status, and must keep what pages promise.
func (s site) page(t testing.TB, status int, method, target, body string, headers ...string) document {
	t.Helper()
	w := s.do(t, method, target, body, headers...)
	if w.Code != status {
		t.Fatalf("%s %s: %d, want %d: %s", method, target, w.Code, status, w.Body)
	}
	return check(t, w)
}

func encode(pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

// stored returns the links of the store.
func (s site) stored(t testing.TB) []link.Link {
	t.Helper()
	slice, err := s.store.List(t.Context(), link.Filter{}, link.Page{Limit: link.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return slice.Links
}

// document is a page that was read.
type document struct {
	*httptest.ResponseRecorder

	root *html.Node
}

// all returns the elements of a name.
func (d document) all(name string) (found []*html.Node) {
	for n := range d.root.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			found = append(found, n)
		}
	}
	return found
}

// byID returns the element with an id; nil = none.
func (d document) byID(id string) *html.Node {
	for n := range d.root.Descendants() {
		if n.Type == html.ElementNode && attr(n, "id") == id {
			return n
		}
	}
	return nil
}

// text is what a reader reads of a node.
func text(n *html.Node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func attr(n *html.Node, name string) string {
	if n == nil {
		return ""
	}
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// elements are all that pages are made of: whatever else is in one was smuggled in.
func elements() []string {
	return strings.Fields(`html head meta title link body main nav header footer section h1 h2 h3 p a bdi strong small kbd form div label input
		textarea select option button svg path rect line g text time ul li dl dt dd figure figcaption table caption thead tbody tr th td details summary span br`)
}

// check holds what every page promises: headers that let nothing in, elements and
// attributes that we wrote, and labels for those who listen.
func check(t testing.TB, w *httptest.ResponseRecorder) document {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if p := w.Header().Get("Referrer-Policy"); p != "no-referrer" && p != "same-origin" {
		t.Errorf("Referrer-Policy is %q", p)
	}
	root, err := html.Parse(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	d := document{w, root}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			checkElement(t, d, n)
		}
	}
	if len(d.all("h1")) != 1 || len(d.all("main")) != 1 || len(d.all("title")) != 1 || attr(d.all("html")[0], "lang") == "" {
		t.Errorf("%d h1, %d main, title %d, lang %q", len(d.all("h1")), len(d.all("main")), len(d.all("title")), attr(d.all("html")[0], "lang"))
	}
	if strings.Contains(w.Body.String(), "ZgotmplZ") {
		t.Errorf("html/template refused a value: %s", w.Body)
	}
	return d
}

func checkElement(t testing.TB, d document, n *html.Node) {
	t.Helper()
	if !slices.Contains(elements(), n.Data) {
		t.Errorf("the page holds a %s", n.Data)
	}
	for _, a := range n.Attr {
		switch {
		case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "src", a.Key == "srcdoc", a.Key == "formaction":
			t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
		case a.Key == "href" && n.Data == "link" && !strings.HasPrefix(a.Val, "/static/"):
			t.Errorf("a file from %q", a.Val)
		case a.Key == "href" && n.Data == "a" && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "?") &&
			!strings.HasPrefix(a.Val, "https://curt.test/") && !strings.HasPrefix(a.Val, "https://go.example/"):
			t.Errorf("a link that leads away: %q", a.Val)
		case a.Key == "aria-describedby":
			for id := range strings.FieldsSeq(a.Val) {
				if d.byID(id) == nil {
					t.Errorf("%s is described by %q, which is not there", n.Data, id)
				}
			}
		}
	}
	if n.Data == "input" && attr(n, "type") != "hidden" || n.Data == "select" || n.Data == "textarea" {
		if !slices.ContainsFunc(d.all("label"), func(l *html.Node) bool { return attr(l, "for") == attr(n, "id") }) {
			t.Errorf("the field %q has no label", attr(n, "name"))
		}
	}
}
