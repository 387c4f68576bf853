package redirect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/cache/cachetest"
	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/redirect"
)

func TestNewResolverWantsSourceAndSpender(t *testing.T) {
	s := cachetest.NewSource()
	for _, cfg := range []redirect.ResolverConfig{{}, {Source: s}, {Spender: s}} {
		if _, err := redirect.NewResolver(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

// want is an answer of the table in short.
type want struct {
	status   int
	location string
	problem  redirect.Problem
	click    clicks.Outcome
}

func short(o redirect.Outcome) want { return want{o.Status, o.Location, o.Problem, o.Click} }

// TestTableOfAnswers is the table of the package comment, for every state, method
// and kind of client.
func TestTableOfAnswers(t *testing.T) {
	past, future := now().Add(-time.Hour).UnixMilli(), now().Add(time.Hour).UnixMilli()
	live := want{302, dest, redirect.NoProblem, clicks.Redirected}
	fell := want{302, back, redirect.NoProblem, clicks.FellBack}
	unknown := want{404, "", redirect.NotFound, clicks.Orphan}
	refused := func(status int, p redirect.Problem) want { return want{status, "", p, clicks.Refused} }
	notAllowed := refused(405, redirect.MethodNotAllowed)

	for _, c := range []struct {
		name   string
		target link.Target
		get    want // GET by a program; HEAD is the same
		html   want // GET by a browser, where it differs in more than the body
		post   want // any other method, where it differs
	}{
		{name: "live", get: live, post: notAllowed},
		{name: "not yet", target: link.Target{Starts: future}, get: unknown},
		{name: "started", target: link.Target{Starts: past}, get: live, post: notAllowed},
		{name: "expired", target: link.Target{Expires: past}, get: refused(410, redirect.Expired)},
		{name: "expires later", target: link.Target{Expires: future}, get: live, post: notAllowed},
		{name: "expired, fallback", target: link.Target{Expires: past, Fallback: back}, get: fell, post: notAllowed},
		{name: "exhausted", target: link.Target{Limited: true, Exhausted: true}, get: refused(410, redirect.Exhausted)},
		{name: "exhausted, fallback", target: link.Target{Limited: true, Exhausted: true, Fallback: back}, get: fell, post: notAllowed},
		{name: "disabled", target: link.Target{Status: link.Disabled}, get: refused(410, redirect.Disabled)},
		{name: "disabled, fallback", target: link.Target{Status: link.Disabled, Fallback: back}, get: refused(410, redirect.Disabled)},
		{name: "disabled, expired, fallback", target: link.Target{Status: link.Disabled, Expires: past, Fallback: back}, get: refused(410, redirect.Disabled)},
		{name: "disabled, warn, fallback", target: link.Target{Status: link.Disabled, Safety: link.Warn, Fallback: back}, get: refused(410, redirect.Disabled)},
		{name: "expired, hostile fallback", target: link.Target{Expires: past, Fallback: "javascript:alert(1)"}, get: refused(410, redirect.Expired)},
		{name: "warn, expired, fallback", target: link.Target{Safety: link.Warn, Expires: past, Fallback: back}, get: refused(403, redirect.Warning), html: refused(200, redirect.Warning), post: notAllowed},
		{name: "quarantined, exhausted, fallback", target: link.Target{Safety: link.Quarantined, Limited: true, Exhausted: true, Fallback: back}, get: refused(403, redirect.Warning), html: refused(200, redirect.Warning), post: notAllowed},
		{name: "warn, expired, hostile fallback", target: link.Target{Safety: link.Warn, Expires: past, Fallback: "javascript:alert(1)"}, get: refused(410, redirect.Expired)},
		{name: "deleted", target: link.Target{Status: link.Deleted, Fallback: back}, get: refused(410, redirect.Deleted)},
		{name: "warn", target: link.Target{Safety: link.Warn}, get: refused(403, redirect.Warning), html: refused(200, redirect.Warning), post: notAllowed},
		{name: "quarantined", target: link.Target{Safety: link.Quarantined, Fallback: back}, get: refused(403, redirect.Warning), html: refused(200, redirect.Warning), post: notAllowed},
		{name: "blocked", target: link.Target{Safety: link.Blocked, Fallback: back}, get: refused(403, redirect.Blocked)},
		{name: "legal", target: link.Target{Safety: link.Legal, Fallback: back}, get: refused(451, redirect.Legal)},

		// The first that holds decides.
		{name: "never written, unreadable", target: link.Target{Status: link.Deleted, Redirect: 1}, get: refused(410, redirect.Unreadable)},
		{name: "never written, invalid", target: link.Target{Status: link.Deleted, Redirect: 2, Safety: link.Blocked}, get: refused(410, redirect.Unstorable)},
		{name: "deleted before legal", target: link.Target{Status: link.Deleted, Safety: link.Legal}, get: refused(410, redirect.Deleted)},
		{name: "legal before disabled", target: link.Target{Status: link.Disabled, Safety: link.Legal}, get: refused(451, redirect.Legal)},
		{name: "blocked before disabled", target: link.Target{Status: link.Disabled, Safety: link.Blocked}, get: refused(403, redirect.Blocked)},
		{name: "not yet before deleted", target: link.Target{Status: link.Deleted, Starts: future}, get: unknown},
		{name: "not yet before disabled", target: link.Target{Status: link.Disabled, Starts: future}, get: unknown},
		{name: "not yet before blocked", target: link.Target{Safety: link.Blocked, Starts: future}, get: unknown},
		{name: "not yet before legal", target: link.Target{Safety: link.Legal, Starts: future}, get: unknown},
		{name: "not yet before warn", target: link.Target{Safety: link.Warn, Starts: future}, get: unknown},
		{name: "not yet before exhausted", target: link.Target{Limited: true, Exhausted: true, Starts: future}, get: unknown},
		{name: "not yet before expired", target: link.Target{Starts: future, Expires: past}, get: unknown},
		{name: "expired before exhausted", target: link.Target{Expires: past, Limited: true, Exhausted: true}, get: refused(410, redirect.Expired)},
		{name: "exhausted before warn", target: link.Target{Limited: true, Exhausted: true, Safety: link.Warn}, get: refused(410, redirect.Exhausted)},
		{name: "expired before quarantined", target: link.Target{Expires: past, Safety: link.Quarantined}, get: refused(410, redirect.Expired)},
	} {
		if c.html == (want{}) {
			c.html = c.get
		}
		if c.post == (want{}) {
			c.post = c.get
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE", "BREW"} {
			for _, accept := range []string{program, browser, ""} {
				t.Run(fmt.Sprintf("%s/%s/%q", c.name, method, accept), func(t *testing.T) {
					s := cachetest.NewSource()
					c.target.Destination = dest
					s.Put(key("abc"), c.target)
					out := resolve(t, s, redirect.Request{Method: method, Accept: []string{accept}}, now())
					expect := c.get
					if accept == browser {
						expect = c.html
					}
					if method != "GET" && method != "HEAD" {
						expect = c.post
					}
					if diff := cmp.Diff(expect, short(out), cmp.AllowUnexported(want{})); diff != "" {
						t.Error(diff)
					}
					checkOutcome(t, out, accept == browser)
				})
			}
		}
	}
}

// checkOutcome holds for every answer to a link whose noindex is false.
func checkOutcome(t *testing.T, out redirect.Outcome, html bool) {
	t.Helper()
	if out.Problem == redirect.NoProblem {
		if out.NoIndex || out.HTML || out.CacheControl != "private, max-age=0" {
			t.Errorf("a redirect with %+v", out)
		}
		return
	}
	if !out.NoIndex || out.CacheControl != "no-store" || out.HTML != html || out.Location != "" {
		t.Errorf("a problem with %+v", out)
	}
	if (out.Allow != "") != (out.Status == 405) || out.RetryAfter != 0 {
		t.Errorf("headers of %+v", out)
	}
	if (out.Destination != "") != (out.Status == 200) {
		t.Errorf("the destination is named by %+v", out)
	}
}

// What the warning page names is where the link leads now, and of a link with a bound,
// whose click the page does not spend, the host alone; a look finds the same.
func TestWhatAWarningNames(t *testing.T) {
	past := now().Add(-time.Hour).UnixMilli()
	const secret = "https://example.com:8443/secret?a=b"
	for name, c := range map[string]struct {
		target link.Target
		want   string
	}{
		"live":      {link.Target{Safety: link.Warn}, secret},
		"bounded":   {link.Target{Safety: link.Quarantined, Limited: true}, "https://example.com/…"},
		"expired":   {link.Target{Safety: link.Warn, Expires: past, Fallback: back}, back},
		"exhausted": {link.Target{Safety: link.Warn, Limited: true, Exhausted: true, Fallback: back}, back},
	} {
		s := cachetest.NewSource()
		c.target.Destination = secret
		s.Put(key("abc"), c.target)
		q := redirect.Request{Method: "GET", Accept: []string{browser}}
		if out := resolve(t, s, q, now()); out.Problem != redirect.Warning || out.Destination != c.want {
			t.Errorf("%s: %+v", name, out)
		}
		_, out, err := newResolver(t, s).Peek(t.Context(), key("abc"), q, now())
		if err != nil || out.Problem != redirect.Warning || out.Destination != c.want {
			t.Errorf("a look at %s: %+v, %v", name, out, err)
		}
	}
}

func TestUnknownAndUnavailable(t *testing.T) {
	s := cachetest.NewSource()
	r := newResolver(t, s)
	for _, code := range []string{"abc", "", "a b", "a/b", "a.b", "ä", "abc+", strings.Repeat("a", 65)} {
		out, err := r.Resolve(t.Context(), key(code), redirect.Request{Method: "POST"}, now())
		if err != nil || short(out) != (want{404, "", redirect.NotFound, clicks.Orphan}) || out.CacheControl != "no-store" {
			t.Errorf("%q: %+v, %v", code, out, err)
		}
	}
	if got := s.Lookups(key("a/b")); got != 0 {
		t.Errorf("the store was asked %d times for what is no code", got)
	}
	s.SetDown(errAway)
	out, err := r.Resolve(t.Context(), key("abc"), redirect.Request{Method: "GET"}, now())
	if !errors.Is(err, errAway) || short(out) != (want{503, "", redirect.Unavailable, 0}) || out.RetryAfter < 1 || out.CacheControl != "no-store" {
		t.Errorf("without the store: %+v, %v", out, err)
	}
}

func TestCodesMatchExactly(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest})
	r := newResolver(t, s)
	for code, status := range map[string]int{"abc": 302, "ABC": 404, "abC": 404, "ab": 404, "abcd": 404} {
		if out, _ := r.Resolve(t.Context(), key(code), redirect.Request{Method: "GET"}, now()); out.Status != status {
			t.Errorf("%s: %d, want %d", code, out.Status, status)
		}
	}
}

func TestExpiryAndStartAreExactToTheMillisecond(t *testing.T) {
	s := cachetest.NewSource()
	at := now().Truncate(time.Millisecond)
	s.Put(key("abc"), link.Target{Destination: dest, Starts: at.UnixMilli(), Expires: at.Add(time.Second).UnixMilli()})
	for after, wanted := range map[time.Duration]int{
		-time.Nanosecond: 404, -time.Millisecond: 404, 0: 302, time.Nanosecond: 302,
		time.Second - time.Nanosecond: 302, time.Second - time.Millisecond: 302, time.Second: 410, time.Hour: 410,
	} {
		if out := resolve(t, s, redirect.Request{Method: "GET"}, at.Add(after)); out.Status != wanted {
			t.Errorf("%v after the start: %d, want %d", after, out.Status, wanted)
		}
	}
}

func TestRedirectsOfEachStatus(t *testing.T) {
	in := func(d time.Duration) int64 { return now().Add(d).UnixMilli() }
	for _, c := range []struct {
		target link.Target
		post   int
		cache  string
	}{
		{link.Target{Redirect: 301}, 405, "private, max-age=90"},
		{link.Target{Redirect: 302}, 405, "private, max-age=0"},
		{link.Target{Redirect: 307}, 307, "private, max-age=0"},
		{link.Target{Redirect: 308}, 308, "private, max-age=90"},
		{link.Target{Redirect: 302, Cacheable: true}, 405, "public, max-age=60"},
		{link.Target{Redirect: 301, Cacheable: true}, 405, "public, max-age=60"},
		{link.Target{Redirect: 302, Cacheable: true, ForwardQuery: true}, 405, "private, max-age=0"},
		{link.Target{Redirect: 302, Cacheable: true, Limited: true}, 405, "private, max-age=0"},
		{link.Target{Redirect: 301, Limited: true}, 405, "private, max-age=0"},
		// Nobody may keep an answer past the expiry.
		{link.Target{Redirect: 301, Expires: in(time.Hour)}, 405, "private, max-age=90"},
		{link.Target{Redirect: 301, Expires: in(30500 * time.Millisecond)}, 405, "private, max-age=30"},
		{link.Target{Redirect: 302, Cacheable: true, Expires: in(30500 * time.Millisecond)}, 405, "public, max-age=30"},
		{link.Target{Redirect: 302, Cacheable: true, Expires: in(999 * time.Millisecond)}, 405, "private, max-age=0"},
	} {
		s := cachetest.NewSource()
		c.target.Destination = dest
		s.Put(key("abc"), c.target)
		get := resolve(t, s, redirect.Request{Method: "GET"}, now())
		if get.Status != int(c.target.Redirect) || get.CacheControl != c.cache {
			t.Errorf("%+v: %d, %q, want %q", c.target, get.Status, get.CacheControl, c.cache)
		}
		post := resolve(t, s, redirect.Request{Method: "POST"}, now())
		if post.Status != c.post || (c.post == 405) != (post.Allow == "GET, HEAD") {
			t.Errorf("%+v: POST gives %d, Allow %q", c.target, post.Status, post.Allow)
		}
	}
}

func TestNoIndexIsTheLinks(t *testing.T) {
	for _, noIndex := range []bool{true, false} {
		s := cachetest.NewSource()
		s.Put(key("abc"), link.Target{Destination: dest, NoIndex: noIndex})
		if out := resolve(t, s, redirect.Request{Method: "GET"}, now()); out.NoIndex != noIndex {
			t.Errorf("noindex %v gives %v", noIndex, out.NoIndex)
		}
	}
}

func TestHostileDestinationsAreNeverALocation(t *testing.T) {
	for _, url := range []string{
		"", "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "java\tscript:x", "\x01javascript:x",
		"//evil.example", "/relative", "\\\\evil.example", "http:/one-slash", "http://", "https:///path", "HTTP://upper.example/",
		"https://a.example/\r\nSet-Cookie: x=1", "https://a.example/\x00", "https://a.example/\x7f", "https://a.example/ b",
		"https://a.example/ä", " https://a.example/", "ftp://a.example/", "https://a.example/" + strings.Repeat("x", 8192),
	} {
		s := cachetest.NewSource()
		s.Put(key("abc"), link.Target{Destination: url, Fallback: url})
		out, err := newResolver(t, s).Resolve(t.Context(), key("abc"), redirect.Request{Method: "GET"}, now())
		if out.Location != "" || out.Status < 400 {
			t.Errorf("%q became %+v", url, out)
		}
		if out.Status == 500 && !errors.Is(err, link.ErrInvalid) {
			t.Errorf("%q: error %v", url, err)
		}
	}
}

func TestClicksAreSpentExactly(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest, Limited: true})
	s.SetLeft(key("abc"), 100)
	r := newResolver(t, s)
	for _, q := range []redirect.Request{
		{Method: "HEAD", Preview: true}, {Method: "GET", Preview: true}, {Method: "GET", Agent: "robot"}, {Method: "POST"},
	} {
		for range 200 {
			_, _ = r.Resolve(t.Context(), key("abc"), q, now())
		}
	}
	var redirected, exhausted atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			out, err := r.Resolve(context.Background(), key("abc"), redirect.Request{Method: "GET"}, now())
			switch {
			case err == nil && out.Status == 302:
				redirected.Add(1)
			case err == nil && out.Problem == redirect.Exhausted && out.Status == 410:
				exhausted.Add(1)
			}
		})
	}
	wg.Wait()
	if redirected.Load() != 100 || exhausted.Load() != 100 {
		t.Errorf("%d redirects and %d refusals of 200, want 100 and 100", redirected.Load(), exhausted.Load())
	}
}

// failingSpender answers with an error.
type failingSpender struct{ err error }

func (f failingSpender) Spend(context.Context, link.Key, uint64) (uint64, error) { return 0, f.err }

func TestAClickThatCannotBeSpentIsNotGivenAway(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest, Limited: true})
	for err, status := range map[error]int{errAway: 503, link.ErrNotFound: 404} {
		r, _ := redirect.NewResolver(redirect.ResolverConfig{Source: s, Spender: failingSpender{err}})
		out, _ := r.Resolve(t.Context(), key("abc"), redirect.Request{Method: "GET"}, now())
		if out.Status != status || out.Location != "" {
			t.Errorf("%v: %+v, want %d", err, out, status)
		}
	}
}
