package abuse_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/internal/abuse"
	"curt/internal/weburl"
)

// write makes a list of these lines and returns its path.
func write(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, paths ...string) *abuse.Blocklists {
	t.Helper()
	b, err := abuse.Open(t.Context(), abuse.Config{Paths: paths})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// forbids returns the rule that forbids a URL; none is the zero Rule.
func forbids(t *testing.T, b *abuse.Blocklists, raw string) abuse.Rule {
	t.Helper()
	u, err := weburl.Parse(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	rule, _ := b.Match(u)
	return rule
}

func TestALineMeansItsHostAndWhatIsBelow(t *testing.T) {
	b := open(t, write(t, "bad.txt", "evil.example", "deep.sub.example.org", "shop.co.uk", "mallory.github.io", "192.0.2.7", "2001:db8::7"))
	for raw, host := range map[string]string{
		"https://evil.example/":           "evil.example",
		"https://www.evil.example/a?b#c":  "evil.example",
		"https://a.b.c.evil.example:8443": "evil.example",
		"https://notevil.example/":        "",
		"https://evil.example.com/":       "",
		"https://example/":                "",
		"https://deep.sub.example.org/":   "deep.sub.example.org",
		"https://x.deep.sub.example.org/": "deep.sub.example.org",
		"https://sub.example.org/":        "",
		"https://pay.shop.co.uk/":         "shop.co.uk",
		"https://other.co.uk/":            "",
		"https://x.mallory.github.io/":    "mallory.github.io",
		"https://alice.github.io/":        "",
		"http://192.0.2.7:81/":            "192.0.2.7",
		"http://192.0.2.8/":               "",
		"http://[2001:db8:0:0::7]/":       "2001:db8::7",
	} {
		if got := forbids(t, b, raw).Host; got != host {
			t.Errorf("%s: forbidden by %q, want %q", raw, got, host)
		}
	}
}

// A careless line must not take the internet away.
func TestWhatBelongsToManyForbidsOnlyItself(t *testing.T) {
	b := open(t, write(t, "wide.txt", "com", "co.uk", "github.io", "example", "*.com", "."+"org", "s3.amazonaws.com"))
	for _, raw := range []string{
		"https://example.com/", "https://bbc.co.uk/", "https://alice.github.io/", "https://a.example/", "https://example.org/",
		"https://bucket.s3.amazonaws.com/", "https://com/",
	} {
		if rule := forbids(t, b, raw); rule != (abuse.Rule{}) {
			t.Errorf("%s is forbidden by %v", raw, rule)
		}
	}
	if rule := forbids(t, b, "https://github.io/"); rule.Host != "github.io" {
		t.Errorf("the host itself: %v", rule)
	}
}

// Forty ways to write hosts that are listed in one way each.
func TestEverySpellingIsCaught(t *testing.T) {
	b := open(t, write(t, "bad.txt", "evil.example", "xn--mnchen-3ya.example", "straße.example", "127.0.0.1"))
	for _, raw := range []string{
		"http://evil.example", "HTTP://EVIL.EXAMPLE/", "https://Evil.Example./", "https:evil.example", "https:/evil.example", `https:\\evil.example\x`,
		"https://////evil.example", "  https://evil.example  ", "https://evil.example:443/", "https://evil.example:8443/", "https://@evil.example/", "https://:@evil.example/",
		"https://%65vil.example/", "https://evil%2Eexample/", "https://%45%56%49%4C.example/", "https://ｅｖｉｌ.example/", "https://evil。example/", "https://evil．example/",
		"https://evil｡example/", "https://ev\u00adil.example/", "https://WWW.evil.example/", "https://a.b.evil.example./", "https://evil.example?x", "https://evil.example#x",
		"https://münchen.example/", "https://MÜNCHEN.example/", "https://xn--mnchen-3ya.example/", "https://XN--MNCHEN-3YA.EXAMPLE/", "https://mu\u0308nchen.example/", "https://m%C3%BCnchen.example/",
		"https://straße.example/", "https://xn--strae-oqa.example/",
		"http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f.1/", "http://0x7F000001/", "http://0177.0.0.1/", "http://0177.0.0.01./",
		"http://127.0.0.1.:80/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://１２７.０.０.１/",
	} {
		if rule := forbids(t, b, raw); rule.List != "bad" {
			t.Errorf("%q is not caught", raw)
		}
	}
}

func TestTheFirstListThatForbidsIsNamed(t *testing.T) {
	b := open(t, write(t, "one.txt", "a.example"), write(t, "two.hosts", "0.0.0.0 b.example a.example"))
	for raw, want := range map[string]abuse.Rule{
		"https://a.example/": {List: "one", Host: "a.example"},
		"https://b.example/": {List: "two", Host: "b.example"},
	} {
		if got := forbids(t, b, raw); got != want {
			t.Errorf("%s: %v, want %v", raw, got, want)
		}
	}
	if n := b.Stats().Hosts; n != 3 {
		t.Errorf("%d hosts in use", n)
	}
}

func BenchmarkMatch(b *testing.B) {
	path := filepath.Join(b.TempDir(), "bad.txt")
	var text strings.Builder
	for i := range 1_000_000 {
		text.WriteString(strings.Repeat("x", i%20) + string(rune('a'+i%26)) + "-" + strings.Repeat("y", i%7) + ".example\n")
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	lists, err := abuse.Open(b.Context(), abuse.Config{Paths: []string{path}})
	if err != nil {
		b.Fatal(err)
	}
	u, err := weburl.Parse("https://www.shop.example.com/path?query")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		lists.Match(u)
	}
}
