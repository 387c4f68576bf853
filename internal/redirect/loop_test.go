package redirect_test

import (
	"testing"

	"curt/internal/cache/cachetest"
	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/redirect"
	"curt/internal/weburl"
)

func guard(t *testing.T) func(link.Target) link.Target {
	t.Helper()
	own, err := weburl.NewHosts("https://curt.example", []string{"go.example"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return redirect.NewLoopGuard(own)
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
		if prepared := redirect.NewPreparer()(key("abc"), target); prepared.Head != "" || prepared.Tail != "" {
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
