package redirect_test

import (
	"testing"

	"curt/internal/cache/cachetest"
	"curt/internal/clicks"
	"curt/internal/hosts/hoststest"
	"curt/internal/link"
	"curt/internal/redirect"
)

func guard(t *testing.T) func(link.Target) link.Target {
	t.Helper()
	return redirect.NewLoopGuard(hoststest.New(t, "https://curt.example", "go.example"))
}

func TestTheGuardKnowsWhatBecameOurs(t *testing.T) {
	admit := guard(t)
	for url, want := range map[string]bool{
		"https://curt.example/abc": true, "http://go.example:8080/": true, "https://GO.EXAMPLE./x": true,
		"https://example.com/?https://go.example/": false, "https://www.go.example/": false, "not a URL": false, "": false,
	} {
		before := link.Target{Destination: url, Fallback: back, Redirect: 302, Status: link.Active, Safety: link.Clean, Version: 7}
		after := before
		after.Loops = want
		if got := admit(before); got != after {
			t.Errorf("%s: %+v", url, got)
		}
		if got := admit(after); got != after {
			t.Errorf("%s twice: %+v", url, got)
		}
		before = link.Target{Destination: dest, Fallback: url}
		after = before
		if want {
			after.Fallback = ""
		}
		if got := admit(before); got != after {
			t.Errorf("fallback %s: %+v", url, got)
		}
	}
}

// A link that leads to ourselves is no redirect, by whatever method it may be
// followed, and spends no click.
func TestALinkThatLeadsHomeLeadsNowhere(t *testing.T) {
	for _, change := range []func(*link.Target){
		func(*link.Target) {},
		func(l *link.Target) { l.Limited = true },
		func(l *link.Target) { l.ForwardQuery = true },
		func(l *link.Target) { l.Redirect = 308 },
	} {
		target := guard(t)(link.Target{Destination: "https://go.example/b", Redirect: 302, Status: link.Active, Safety: link.Clean})
		change(&target)
		if prepared := redirect.NewPreparer("")(key("abc"), target); prepared.Head != "" || prepared.Tail != "" {
			t.Errorf("prepared %+v", prepared)
		}
		s := cachetest.NewSource()
		s.Put(key("abc"), target)
		for _, method := range []string{"GET", "HEAD"} {
			out, err := newResolver(t, s).Resolve(t.Context(), key("abc"), redirect.Request{Method: method, Query: "a=b", Accept: []string{browser}}, now())
			if err == nil || out.Status != 508 || out.Problem != redirect.Loop || out.Location != "" || !out.HTML ||
				out.Click != clicks.Refused || out.CacheControl != "no-store" {
				t.Errorf("%s: %+v, %v", method, out, err)
			}
		}
	}
}

func TestLeadsBack(t *testing.T) {
	for _, c := range []struct {
		url, host string
		want      bool
	}{
		{"http://a.example/x", "a.example", true},
		{"http://a.example/x", "A.Example:80", true},
		{"https://a.example", "a.example:443", true},
		{"https://a.example?x", "a.example", true},
		{"https://a.example#/", "a.example.", true},
		{"https://a.example./", "a.example", true},
		{"http://a.example:8080/x", "a.EXAMPLE:8080", true},
		{"http://a.example/", "a.example:", true},
		{"http://[2001:db8::1]:81/", "[2001:DB8::1]:81", true},
		{"http://[2001:db8::1]/", "[2001:db8::1]", true},
		{"http://a.example/x", "", false},
		{"", "", false},
		{"", "a.example", false},
		{"not a URL", "not", false},
		{"http://", "a", false},
		{"http://a.example:8080/x", "a.example", false},
		{"https://a.example/", "a.example:80", false},
		{"http://a.example.org/", "a.example", false},
		{"http://a.exampl/", "a.example", false},
		{"https://b.example/?https://a.example/", "a.example", false},
		{"http://[2001:db8::1]/", "[2001:db8::2]", false},
		{"http://a.example/", ":80", false},
		{"http://a.example/", "a.example..", false},
	} {
		if got := redirect.LeadsBack(c.url, c.host); got != c.want {
			t.Errorf("%q from %q: %t", c.url, c.host, got)
		}
	}
}

// A strange Host that a link leads to is as our own: no redirect, nothing spent, and
// a fallback there counts as none.
func TestAStrangeHostIsNotLedTo(t *testing.T) {
	target := link.Target{Destination: "https://a.example/b", Redirect: 302, Status: link.Active, Safety: link.Clean, Limited: true}
	s := cachetest.NewSource()
	s.Put(key("abc"), target)
	s.SetLeft(key("abc"), 1)
	out, err := newResolver(t, s).Resolve(t.Context(), key("abc"), redirect.Request{Method: "GET", UnconfiguredHost: "A.example"}, now())
	if err == nil || out.Problem != redirect.Loop || out.Click != clicks.Refused || out.Location != "" {
		t.Errorf("%+v, %v", out, err)
	}
	if out := resolve(t, s, redirect.Request{Method: "GET", UnconfiguredHost: "b.example"}, now()); out.Location != target.Destination {
		t.Errorf("its one click is spent: %+v", out)
	}
	target.Expires, target.Fallback = 1, "https://a.example/over"
	s.Put(key("abc"), target)
	for stranger, status := range map[string]int{"a.example": 410, "": 302, "b.example": 302} {
		if out := resolve(t, s, redirect.Request{Method: "GET", UnconfiguredHost: stranger}, now()); out.Status != status {
			t.Errorf("fallback, %q: %+v", stranger, out)
		}
	}
}
