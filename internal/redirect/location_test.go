package redirect_test

import (
	"net/url"
	"strings"
	"testing"

	"curt/internal/cache/cachetest"
	"curt/internal/link"
	"curt/internal/redirect"
)

func forward(t *testing.T, destination, query string) redirect.Outcome {
	t.Helper()
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: destination, ForwardQuery: true})
	return resolve(t, s, redirect.Request{Method: "GET", Query: query}, now())
}

func TestQueryIsForwarded(t *testing.T) {
	for _, c := range []struct{ destination, query, want string }{
		{"https://a.example/p", "", "https://a.example/p"},
		{"https://a.example/p", "x=1", "https://a.example/p?x=1"},
		{"https://a.example/p", "x=1&y=%20", "https://a.example/p?x=1&y=%20"},
		{"https://a.example/p?a=b", "x=1", "https://a.example/p?a=b&x=1"},
		{"https://a.example/p?", "x=1", "https://a.example/p?x=1"},
		{"https://a.example/p?a&", "x=1", "https://a.example/p?a&x=1"},
		{"https://a.example/p#top", "x=1", "https://a.example/p?x=1#top"},
		{"https://a.example/p?a=b#t?u", "x=1", "https://a.example/p?a=b&x=1#t?u"},
		{"https://a.example/p", "qr=1", "https://a.example/p"},
		{"https://a.example/p", "qr=1&x=1", "https://a.example/p?x=1"},
		{"https://a.example/p", "x=1&qr=1&y=2", "https://a.example/p?x=1&y=2"},
		{"https://a.example/p", "qr=2&xqr=1", "https://a.example/p?qr=2&xqr=1"},
		{"https://a.example/p", "&&x=1&", "https://a.example/p?x=1"},
		{"https://a.example/p", "x=ä", "https://a.example/p?x=%C3%A4"},
		{"https://a.example/p", "x=\r\nSet-Cookie: a", "https://a.example/p?x=%0D%0ASet-Cookie:%20a"},
		{"https://a.example/p", "x=\"<'>#\x7f\xff", "https://a.example/p?x=%22%3C%27%3E%23%7F%FF"},
		{"https://a.example/p", "u=https://b.example/?q=1", "https://a.example/p?u=https://b.example/?q=1"},
	} {
		if got := forward(t, c.destination, c.query).Location; got != c.want {
			t.Errorf("%s with %q is %q, want %q", c.destination, c.query, got, c.want)
		}
	}
}

func TestWithoutForwardQueryTheQueryIsIgnored(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest})
	if got := resolve(t, s, redirect.Request{Method: "GET", Query: "x=1"}, now()).Location; got != dest {
		t.Errorf("got %q", got)
	}
}

func TestTooLongWithItsQuery(t *testing.T) {
	const destination = "https://a.example/p"
	fits := strings.Repeat("x", link.MaxDestination-len(destination)-1)
	if out := forward(t, destination, fits); out.Status != 302 || len(out.Location) != link.MaxDestination {
		t.Errorf("%d bytes: status %d", len(out.Location), out.Status)
	}
	if out := forward(t, destination, fits+"x"); out.Status != 414 || out.Problem != redirect.URITooLong || out.Location != "" {
		t.Errorf("one byte more: %+v", out)
	}
}

func FuzzForwardedQuery(f *testing.F) {
	f.Add("https://a.example/p?a=b#c", "x=1&qr=1&y=\r\n")
	f.Add("https://a.example", "&&&=#?%zz")
	f.Fuzz(func(t *testing.T, destination, query string) {
		out, err := func() (redirect.Outcome, error) {
			s := cachetest.NewSource()
			s.Put(key("abc"), link.Target{Destination: destination, ForwardQuery: true})
			return newResolver(t, s).Resolve(t.Context(), key("abc"), redirect.Request{Method: "GET", Query: query}, now())
		}()
		if out.Location == "" {
			if out.Status < 400 || (err == nil && out.Status != 414) {
				t.Fatalf("%q with %q: %+v, %v", destination, query, out, err)
			}
			return
		}
		for i := range len(out.Location) {
			if c := out.Location[i]; c < 0x21 || c > 0x7e {
				t.Fatalf("byte %#x in %q", c, out.Location)
			}
		}
		base, fragment, _ := strings.Cut(destination, "#")
		if !strings.HasPrefix(out.Location, base) || !strings.HasSuffix(out.Location, fragment) {
			t.Fatalf("%q with %q lost its own parts: %q", destination, query, out.Location)
		}
		before, errBefore := url.Parse(destination)
		after, errAfter := url.Parse(out.Location)
		if errBefore == nil && (errAfter != nil || before.Host != after.Host || before.Path != after.Path) {
			t.Fatalf("%q with %q leads to %q", destination, query, out.Location)
		}
	})
}
