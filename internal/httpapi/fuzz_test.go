package httpapi_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"curt/internal/link"
	"curt/internal/weburl"
)

// FuzzCreate: whatever the body, the answer is 201 with a link that leads to http
// or https in printable ASCII, or a 4xx problem; never a 500.
func FuzzCreate(f *testing.F) {
	for _, h := range badBodies() {
		if len(h.body) < 1000 {
			f.Add(h.body)
		}
	}
	f.Add(`{"long_url":"https://example.com/a?b#c","custom_alias":"abc","expires_in":5,"tags":["x"],"max_clicks":3}`)
	f.Add(`{"long_url":"http://[::1]:81/ü","starts_at":"2026-07-01T00:00+05:45","fallback_url":"http://example.org"}`)
	s := newService(f, func(p *parts) { p.store = forgetful{} })
	f.Fuzz(func(t *testing.T, body string) {
		got := s.do(t, "admin", http.MethodPost, collection, body, "Content-Type: application/json")
		if got.StatusCode != http.StatusCreated {
			if got.StatusCode < 400 || got.StatusCode > 499 {
				t.Errorf("%d for %q: %s", got.StatusCode, body, got.body)
			}
			got.problem(t)
			return
		}
		long, _ := got.json(t)["long_url"].(string)
		u, err := weburl.Parse(long)
		if err != nil || u.Href() != long || !strings.HasPrefix(long, "http") {
			t.Errorf("%q leads to %q, which reads as %q (%v)", body, long, u.Href(), err)
		}
		if strings.ContainsFunc(long, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q leads to %q", body, long)
		}
	})
}

// FuzzSpellings: whatever the body, every other path that makes links answers 201
// with a short link of ours, or a 4xx problem; never a 500.
func FuzzSpellings(f *testing.F) {
	paths := []string{"/api/v1/urls", "/shorten", "/v1/urls", "/v1/links"}
	for i := range paths {
		for _, h := range slices.Concat(badBodies(), badCreates()) {
			if len(h.body) < 1000 && h.path == "" {
				f.Add(byte(i), h.body)
				f.Add(byte(i), inCamelCase(h.body))
			}
		}
	}
	for i, p := range designs() {
		f.Add(byte(i), p.sent)
	}
	s := newService(f, func(p *parts) { p.store = forgetful{} })
	f.Fuzz(func(t *testing.T, which byte, body string) {
		got := s.do(t, "admin", http.MethodPost, paths[int(which)%len(paths)], body, "Content-Type: application/json")
		if got.StatusCode != http.StatusCreated {
			if got.StatusCode < 400 || got.StatusCode > 499 {
				t.Errorf("%d for %q: %s", got.StatusCode, body, got.body)
			}
			got.problem(t)
			return
		}
		made := got.json(t)
		short, ok := made["short_url"].(string)
		if !ok {
			short, _ = made["shortUrl"].(string)
		}
		if u, err := weburl.Parse(short); err != nil || u.Href() != short {
			t.Errorf("%q made %q (%v)", body, short, err)
		}
	})
}

// FuzzChange: whatever the body, a change is 200 or a 4xx problem.
func FuzzChange(f *testing.F) {
	for _, h := range badChanges() {
		if len(h.body) < 1000 {
			f.Add(h.body)
		}
	}
	f.Add(`{"long_url":"http://example.org","title":null,"status":"disabled","expires_in":5}`)
	s := newService(f)
	s.create(f, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	f.Fuzz(func(t *testing.T, body string) {
		got := s.do(t, "admin", http.MethodPatch, collection+"/abc", body, "Content-Type: application/json")
		if got.StatusCode != http.StatusOK && (got.StatusCode < 400 || got.StatusCode > 499) {
			t.Errorf("%d for %q: %s", got.StatusCode, body, got.body)
		}
		s.do(t, "admin", http.MethodGet, collection+"/abc", "").want(t, http.StatusOK)
	})
}

// walked is a store that remembers what it was asked to go on after.
type walked struct {
	link.Store

	after *atomic.Value
}

func (w walked) List(_ context.Context, _ link.Filter, p link.Page) (link.Slice, error) {
	w.after.Store(p.After)
	return link.Slice{}, nil
}

// FuzzCursor: no text that the API did not sign reaches the store.
func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Add("AAAA")
	f.Add(base64.RawURLEncoding.EncodeToString(make([]byte, 40)))
	f.Add(strings.Repeat("x", 2000))
	var after atomic.Value
	s := newService(f, func(p *parts) { p.store = walked{after: &after} })
	f.Fuzz(func(t *testing.T, cursor string) {
		got := s.do(t, "admin", http.MethodGet, collection+"?cursor="+url.QueryEscape(cursor), "")
		if got.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: got %d", cursor, got.StatusCode)
		}
		if asked := after.Load(); asked != nil {
			t.Errorf("the store was asked to go on after %q", asked)
		}
	})
}

// FuzzSearch: whatever is asked, the answer is 200 or a 400 problem.
func FuzzSearch(f *testing.F) {
	for _, q := range []string{"", "a", "ÄÖ\u0301 東京", strings.Repeat("a ", 200), "\xff", "a\x00b", "-+-", strings.Repeat("x", 300)} {
		f.Add(q, "tag", "live")
		f.Add("word", q, "live")
		f.Add("word", "tag", q)
	}
	s := newService(f, func(p *parts) { p.index = filledIndex(f) })
	s.create(f, "admin", `{"long_url":"http://example.com/a"}`)
	f.Fuzz(func(t *testing.T, q, tag, state string) {
		for name, v := range map[string]string{"q": q, "tag": tag, "state": state} {
			got := s.do(t, "admin", http.MethodGet, collection+"?"+name+"="+url.QueryEscape(v), "")
			if got.StatusCode == http.StatusBadRequest {
				got.problem(t)
			} else if got.StatusCode != http.StatusOK {
				t.Errorf("%s=%q: got %d: %s", name, v, got.StatusCode, got.body)
			}
		}
	})
}
