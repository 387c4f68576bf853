package redirect_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"curt/internal/cache/cachetest"
	"curt/internal/clicks"
	"curt/internal/clientaddr"
	"curt/internal/hosts"
	"curt/internal/hosts/hoststest"
	"curt/internal/link"
	"curt/internal/redirect"
	"curt/internal/redirect/redirecttest"
	"curt/internal/weburl"
)

func TestNewHandlerWantsResolverRecorderAndPages(t *testing.T) {
	r := newResolver(t, cachetest.NewSource())
	for _, cfg := range []redirect.HandlerConfig{
		{}, {Resolver: r, Pages: redirecttest.Pages{}}, {Recorder: &recorder{}, Pages: redirecttest.Pages{}}, {Resolver: r, Recorder: &recorder{}},
	} {
		if _, err := redirect.NewHandler(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

// serve answers one request made by hand.
func serve(h http.Handler, method, url string, header map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, nil)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestClickHoldsTheRequest(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(link.Key{Domain: "go.example", Code: "abc"}, link.Target{Destination: dest})
	rec := &recorder{}
	h := newHandler(t, redirect.HandlerConfig{
		Hosts:   hoststest.New(t, "https://s.example", "go.example"),
		Clients: clientaddr.New(netip.MustParsePrefix("192.0.2.0/24")), // httptest's peer
	}, s, rec)
	before := time.Now().UnixMilli()
	serve(h, "GET", "http://go.example/abc?qr=1&utm_source=x", map[string]string{
		"User-Agent": "agent", "Referer": "https://ref.example/", "Accept-Language": "de", "X-Forwarded-For": "1.1.1.1, 203.0.113.7",
	})
	serve(h, "HEAD", "http://go.example/abc", nil)
	want := []clicks.Raw{
		{
			Domain: []byte("go.example"), Code: []byte("abc"), Outcome: clicks.Redirected, Flags: clicks.ViaQR,
			Addr: netip.MustParseAddr("203.0.113.7"), UserAgent: []byte("agent"), Referrer: []byte("https://ref.example/"),
			Language: []byte("de"), Query: []byte("qr=1&utm_source=x"),
		},
		{
			Domain: []byte("go.example"), Code: []byte("abc"), Outcome: clicks.Redirected, Flags: clicks.Head,
			Addr: netip.MustParseAddr("192.0.2.1"),
		},
	}
	got := rec.all()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(clicks.Raw{}, "Time"), cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if got[0].Time < before || got[0].Time > time.Now().UnixMilli() {
		t.Errorf("time %d", got[0].Time)
	}
}

func TestOutcomeOfEachClick(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("live"), link.Target{Destination: dest})
	s.Put(key("gone"), link.Target{Destination: dest, Expires: 1})
	s.Put(key("back"), link.Target{Destination: dest, Expires: 1, Fallback: back})
	s.Put(key("evil"), link.Target{Destination: dest, Safety: link.Blocked})
	rec := &recorder{}
	h := newHandler(t, redirect.HandlerConfig{}, s, rec)
	for _, c := range []struct {
		method, path string
		code         string
		outcome      clicks.Outcome
	}{
		{"GET", "/live", "live", clicks.Redirected},
		{"POST", "/live", "live", clicks.Refused},
		{"GET", "/gone", "gone", clicks.Refused},
		{"GET", "/back", "back", clicks.FellBack},
		{"GET", "/evil", "evil", clicks.Refused},
		{"GET", "/none", "none", clicks.Orphan},
		{"GET", "/", "", clicks.Orphan},
		{"GET", "/live/", "", clicks.Orphan},
		{"GET", "/" + strings.Repeat("x", 4000), "", clicks.Orphan},
		{"GET", "/%6Cive", "live", clicks.Redirected}, // the same path by RFC 3986, section 6.2.2.2
	} {
		serve(h, c.method, "http://x"+c.path, nil)
		all := rec.all()
		last := all[len(all)-1]
		if string(last.Code) != c.code || last.Outcome != c.outcome {
			t.Errorf("%s %.20s: code %q, outcome %d, want %q, %d", c.method, c.path, last.Code, last.Outcome, c.code, c.outcome)
		}
	}
	n := len(rec.all())
	s.SetDown(errAway)
	if w := serve(h, "GET", "http://x/live", nil); w.Code != 503 || len(rec.all()) != n {
		t.Errorf("without the store: %d, %d clicks", w.Code, len(rec.all())-n)
	}
}

func TestPreviewsAreMarked(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest, Limited: true})
	s.SetLeft(key("abc"), 1)
	rec := &recorder{}
	h := newHandler(t, redirect.HandlerConfig{}, s, rec)
	for name, value := range map[string]string{
		"Sec-Purpose": "prefetch;prerender", "sec-purpose": "Prefetch", "Purpose": "prefetch", "X-Moz": "prefetch", "X-Purpose": "",
	} {
		w := serve(h, "GET", "http://x/abc", map[string]string{name: value})
		all := rec.all()
		last := all[len(all)-1]
		if value != "" && (w.Code != 302 || last.Flags != clicks.Prefetch) {
			t.Errorf("%s: %s gives %d with flags %b", name, value, w.Code, last.Flags)
		}
		if value == "" && (w.Code != 302 || last.Flags != 0) {
			t.Errorf("the one who spends gets %d with flags %b", w.Code, last.Flags)
		}
	}
	if w := serve(h, "GET", "http://x/abc", nil); w.Code != 410 {
		t.Errorf("the second who spends gets %d", w.Code)
	}
}

func TestHEADHasTheHeaderOfGETAndNoBody(t *testing.T) {
	h := newHandler(t, redirect.HandlerConfig{}, cachetest.NewSource(), &recorder{})
	get, head := serve(h, "GET", "http://x/none", nil), serve(h, "HEAD", "http://x/none", nil)
	if diff := cmp.Diff(get.Header(), head.Header()); diff != "" || head.Body.Len() != 0 || get.Body.Len() == 0 {
		t.Errorf("bodies of %d and %d bytes, headers differ by %s", get.Body.Len(), head.Body.Len(), diff)
	}
}

// wire is a ResponseWriter that knows when its answer left, or that it cannot.
type wire struct {
	http.ResponseWriter
	flushed bool
	err     error
}

func (w *wire) FlushError() error {
	w.flushed = w.err == nil
	return w.err
}

func TestAClickIsRecordedAfterItsAnswerLeft(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest})
	w := &wire{ResponseWriter: httptest.NewRecorder()}
	rec := &recorder{before: func() {
		if !w.flushed {
			t.Error("recorded before the answer left")
		}
	}}
	h := newHandler(t, redirect.HandlerConfig{}, s, rec)
	for _, path := range []string{"/abc", "/none"} {
		w.flushed = false
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	}
	w.err = errors.New("the client is gone")
	h.ServeHTTP(w, httptest.NewRequest("GET", "/abc", nil))
	if got := len(rec.all()); got != 2 {
		t.Errorf("%d clicks, want 2: the third answer never left", got)
	}
}

// TestOwnHostsStayServed: where hosts are strict, those that no link may lead to are followed.
func TestOwnHostsStayServed(t *testing.T) {
	own := hoststest.Of(t, hosts.Config{
		Host: "s.example", Domains: []link.Domain{"go.example:8443"}, Strict: true, ServeOwn: true,
		Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("2001:db8::7")},
	})
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest})
	h := newHandler(t, redirect.HandlerConfig{Hosts: own}, s, &recorder{})
	strange := uint64(0)
	for host, want := range map[string]int{
		"s.example": 302, "127.0.0.1:8080": 302, "LOCALHOST.": 302, "localhost:80": 302, "[2001:db8::7]": 302, "[::1]:8080": 302, "go.example": 302,
		"evil.example": 404, "s.example.evil.example": 404, "192.0.2.1": 404, "[2001:db8::8]:80": 404, "": 404, ":": 404, "a": 404, "127.0.0.1.nip.io": 404, "127.1": 404,
	} {
		r := httptest.NewRequest("GET", "/abc", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
		if want == 404 {
			strange++
		}
		if u, err := weburl.Parse("http://" + host + "/"); want == 302 && (err != nil || !own.Load().Refuses(u)) {
			t.Errorf("%q is served, and a link may lead there: %v", host, err)
		}
	}
	if h.UnservedHosts() != strange {
		t.Errorf("%d strange requests, want %d", h.UnservedHosts(), strange)
	}
}

func TestHosts(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: "https://default.example/"})
	for _, d := range []link.Domain{"go.example", "go.example:8443", "[2001:db8::1]"} {
		s.Put(link.Key{Domain: d, Code: "abc"}, link.Target{Destination: "https://" + string(d) + "/"})
	}
	for _, c := range []struct{ host, to, strict string }{
		{"s.example", "https://default.example/", "https://default.example/"},
		{"go.example", "https://go.example/", "https://go.example/"},
		{"GO.Example.", "https://go.example/", "https://go.example/"},
		{"go.example:80", "https://go.example/", "https://go.example/"},
		{"Go.example:8443", "https://go.example:8443/", "https://go.example:8443/"},
		{"[2001:DB8::1]", "https://[2001:db8::1]/", "https://[2001:db8::1]/"},
		{"[2001:db8::1]:80", "https://[2001:db8::1]/", "https://[2001:db8::1]/"},
		{"go.example.evil.example", "https://default.example/", ""},
		{"evil.example", "https://default.example/", ""},
		{"", "https://default.example/", ""},
		{":", "https://default.example/", ""},
	} {
		for _, strict := range []bool{false, true} {
			h := newHandler(t, redirect.HandlerConfig{Hosts: hoststest.Of(t, hosts.Config{
				Host: "s.example", Domains: []link.Domain{"go.example", "go.example:8443", "[2001:db8::1]"}, Strict: strict,
			})}, s, &recorder{})
			r := httptest.NewRequest("GET", "/abc", nil)
			r.Host = c.host
			r.Header.Set("X-Forwarded-Host", "go.example") // nobody's word
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			want := c.to
			if strict {
				want = c.strict
			}
			if got := w.Header().Get("Location"); got != want || (want == "") != (w.Code == 404) {
				t.Errorf("host %q, strict %v: %d %q, want %q", c.host, strict, w.Code, got, want)
			}
		}
	}
}

func TestHeadersOfEveryProblem(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("live"), link.Target{Destination: dest})
	h := newHandler(t, redirect.HandlerConfig{}, s, &recorder{})
	for _, c := range []struct{ method, path, header, value string }{
		{"GET", "/none", "Retry-After", ""},
		{"POST", "/live", "Allow", "GET, HEAD"},
	} {
		for _, accept := range []string{browser, program} {
			w := serve(h, c.method, "http://x"+c.path, map[string]string{"Accept": accept})
			if got := w.Header().Get(c.header); got != c.value {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.path, c.header, got, c.value)
			}
			if w.Header().Get("Vary") != "Accept" || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Robots-Tag") != "noindex" {
				t.Errorf("%s %s: %v", c.method, c.path, w.Header())
			}
			if got := w.Header().Get("Content-Length"); got != fmt.Sprint(w.Body.Len()) {
				t.Errorf("%s %s: Content-Length %s of %d bytes", c.method, c.path, got, w.Body.Len())
			}
		}
	}
}
