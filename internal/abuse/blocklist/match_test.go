package blocklist_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"curt/internal/abuse"
	"curt/internal/abuse/abusetest"
	"curt/internal/abuse/blocklist"
	"curt/internal/weburl"
)

func open(t *testing.T, paths ...string) *blocklist.Lists {
	t.Helper()
	b, err := blocklist.Open(t.Context(), blocklist.Config{Paths: paths})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// forbids returns the rule that forbids a URL; none is the zero Rule.
func forbids(t *testing.T, b *blocklist.Lists, raw string) blocklist.Rule {
	t.Helper()
	u, err := weburl.Parse(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	rule, _ := b.Match(u)
	return rule
}

func TestALineMeansItsHostAndWhatIsBelow(t *testing.T) {
	b := open(t, abusetest.Write(t, "bad.txt", "evil.example", "deep.sub.example.org", "shop.co.uk", "mallory.github.io", "192.0.2.7", "2001:db8::7"))
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
		if got := forbids(t, b, raw).Entry; got != host {
			t.Errorf("%s: forbidden by %q, want %q", raw, got, host)
		}
	}
}

// A careless line must not take the internet away.
func TestWhatBelongsToManyForbidsOnlyItself(t *testing.T) {
	b := open(t, abusetest.Write(t, "wide.txt", "com", "co.uk", "github.io", "example", "*.com", "."+"org", "s3.amazonaws.com"))
	for _, raw := range []string{
		"https://example.com/", "https://bbc.co.uk/", "https://alice.github.io/", "https://a.example/", "https://example.org/",
		"https://bucket.s3.amazonaws.com/", "https://com/",
	} {
		if rule := forbids(t, b, raw); rule != (blocklist.Rule{}) {
			t.Errorf("%s is forbidden by %v", raw, rule)
		}
	}
	if rule := forbids(t, b, "https://github.io/"); rule.Entry != "github.io" {
		t.Errorf("the host itself: %v", rule)
	}
}

func TestTheFirstListThatForbidsIsNamed(t *testing.T) {
	b := open(t, abusetest.Write(t, "one.txt", "a.example"), abusetest.Write(t, "two.hosts", "0.0.0.0 b.example a.example"))
	for raw, want := range map[string]blocklist.Rule{
		"https://a.example/": {List: "one", Entry: "a.example"},
		"https://b.example/": {List: "two", Entry: "b.example"},
	} {
		if got := forbids(t, b, raw); got != want {
			t.Errorf("%s: %v, want %v", raw, got, want)
		}
	}
	if n := b.Stats().Entries; n != 3 {
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
	lists, err := blocklist.Open(b.Context(), blocklist.Config{Paths: []string{path}})
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

func TestEntriesThatAreNoHosts(t *testing.T) {
	sum := func(text string) string {
		digest := sha256.Sum256([]byte(text))
		return hex.EncodeToString(digest[:])
	}
	b := open(t, abusetest.Write(t, "bad.txt",
		"https://url.example/a/b", "http://root.example/", "https://query.example/p?id=1", "http://port.example:8080/x", "http://192.0.2.7/i", "https://github.io/x",
		"||below.example/a^", "||many.example^", "@@||one.many.example^", "@@||many.example/good^", "@@|https://many.example/page|",
		sum("hash.example"), sum("file.example/a/b.exe"), sum("folder.example/a/"), sum("root-hash.example/"), sum("search.example/s?q=x"), sum("https://whole.example/a%20b?c"),
	))
	for raw, want := range map[string]string{
		"https://url.example/a/b":                             "url.example/a/b",
		"http://URL.example:80//a/./b/c?x#y":                  "url.example/a/b",
		"https://url.example/%61/%2562?x":                     "url.example/a/b",
		"https://url.example/a/b?x":                           "url.example/a/b",
		"https://url.example/a/bc":                            "",
		"https://url.example/a":                               "",
		"https://url.example/A/b":                             "",
		"https://www.url.example/a/b":                         "",
		"https://url.example:8443/a/b":                        "",
		"https://root.example/any/where":                      "root.example",
		"https://www.root.example/":                           "",
		"https://query.example/p?id=1":                        "query.example/p?id=1",
		"https://query.example/p/?id=1&x=2":                   "query.example/p?id=1",
		"https://query.example/p?id=12":                       "",
		"https://query.example/p":                             "",
		"https://query.example/p/q?id=1":                      "",
		"https://port.example:8080/x/y":                       "port.example:8080/x",
		"https://port.example/x":                              "",
		"http://[::ffff:192.0.2.7]/i":                         "192.0.2.7/i",
		"http://0xc0000207/i/j":                               "192.0.2.7/i",
		"http://[64:ff9b::192.0.2.7]/i":                       "192.0.2.7/i",
		"http://[2001:0:102:304::3fff:fdf8]/i":                "192.0.2.7/i", // Teredo: the last of three hosts
		"http://[2001:0:c000:207::5efe:1.2.3.4]/i":            "192.0.2.7/i",
		"http://192.0.2.7/":                                   "",
		"https://github.io/x/y":                               "github.io/x",
		"https://alice.github.io/x":                           "",
		"https://a.b.below.example/a/z":                       "below.example/a",
		"https://below.example/a":                             "below.example/a",
		"https://below.example/":                              "",
		"https://two.many.example/":                           "many.example",
		"https://one.many.example/":                           "",
		"https://x.one.many.example/":                         "",
		"https://many.example/good/x":                         "",
		"https://two.many.example/good":                       "",
		"https://many.example/page":                           "",
		"https://two.many.example/page":                       "many.example",
		"https://hash.example/x":                              "SHA-256 of hash.example",
		"https://a.b.c.d.e.f.hash.example/x":                  "SHA-256 of hash.example",
		"https://file.example/a/b.exe?x":                      "SHA-256 of file.example/a/b.exe",
		"https://www.file.example//a/b%2Eexe":                 "SHA-256 of file.example/a/b.exe",
		"https://file.example/a/b.exe/":                       "",
		"https://folder.example/a/b/c":                        "SHA-256 of folder.example/a/",
		"https://folder.example/ab":                           "",
		"https://root-hash.example/a/b/c/d/e/f/g?h":           "SHA-256 of root-hash.example/",
		"https://search.example/s?q=x#f":                      "SHA-256 of search.example/s?q=x",
		"https://search.example/s?q=y":                        "",
		"https://whole.example/a b?c#d":                       "SHA-256 of https://whole.example/a%20b?c",
		"https://whole.example/" + strings.Repeat("a/", 3000): "",
	} {
		if got := forbids(t, b, raw).Entry; got != want {
			t.Errorf("%.80s: forbidden by %q, want %q", raw, got, want)
		}
	}
}

// An allow-list stands above all blocklists, and an exception of a list above its own.
func TestAllowLists(t *testing.T) {
	bad := abusetest.Write(t, "bad.txt", "evil.example", "good.example", "@@||self.evil.example^")
	also := abusetest.Write(t, "also.txt", "self.evil.example")
	good := abusetest.Write(t, "good.txt", "good.example", "https://evil.example/fine", "@@||other.evil.example^")
	b, err := blocklist.Open(t.Context(), blocklist.Config{Paths: []string{bad, also}, Allow: []string{good}})
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]struct{ listed, allowed string }{
		"https://evil.example/":          {"bad: evil.example", ""},
		"https://www.evil.example/":      {"bad: evil.example", ""},
		"https://good.example/":          {"bad: good.example", "good: good.example"},
		"https://evil.example/fine/x":    {"bad: evil.example", "good: evil.example/fine"},
		"https://a.other.evil.example/":  {"bad: evil.example", "good: other.evil.example"},
		"https://self.evil.example/":     {"also: self.evil.example", ""},
		"https://neither.example/":       {},
		"https://sub.good.example/":      {"bad: good.example", "good: good.example"},
		"https://good.example.evil.com/": {},
	} {
		u, err := weburl.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		found, err := b.Inspect(t.Context(), time.Now(), &abuse.Facts{URL: u})
		if err != nil {
			t.Fatal(err)
		}
		var listed, allowed string
		for _, f := range found {
			if f.Signal == abuse.Allowed {
				allowed = f.Evidence
			} else {
				listed = f.Evidence
			}
		}
		if listed != want.listed || allowed != want.allowed {
			t.Errorf("%s: %q and %q, want %q and %q", raw, listed, allowed, want.listed, want.allowed)
		}
		if _, forbidden := b.Match(u); forbidden != (want.listed != "" && want.allowed == "") {
			t.Errorf("%s: forbidden: %v", raw, forbidden)
		}
	}
	if blocked, allowed := b.Stats().Entries, b.AllowStats().Entries; blocked != 4 || allowed != 3 {
		t.Errorf("%d and %d entries", blocked, allowed)
	}
}

// What strangers and file names put into evidence stays short and plain.
func TestEvidenceOfLists(t *testing.T) {
	long := "evil.example/" + strings.Repeat("a", 2000)
	b := open(t, abusetest.Write(t, strings.Repeat("ü\x01", 40)+".txt", "https://"+long))
	u, err := weburl.Parse("https://" + long + "/b")
	if err != nil {
		t.Fatal(err)
	}
	found, err := b.Inspect(t.Context(), time.Now(), &abuse.Facts{URL: u})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if e := found[0].Evidence; len(e) > abuse.MaxEvidence || !utf8.ValidString(e) || strings.ContainsRune(e, 1) || !strings.Contains(e, ": evil.example/aaa") {
		t.Errorf("%d bytes: %q", len(e), e)
	}
}

// A look that finds nothing leaves nothing to collect, whatever kinds of entries the
// lists have.
func TestALookThatFindsNothingAllocatesNothing(t *testing.T) {
	b := open(t, abusetest.Write(t, "bad.txt", "evil.example", "https://evil.example/a/b?c", "||evil.example/x^", "@@||good.evil.example^"), abusetest.Write(t, "more.txt", "0.0.0.0 b.example"))
	u, err := weburl.Parse("https://www.shop.example.com/path/to/a%61page?query=1&more=2")
	if err != nil {
		t.Fatal(err)
	}
	facts := &abuse.Facts{URL: u}
	if n := testing.AllocsPerRun(100, func() {
		if found, err := b.Inspect(t.Context(), time.Time{}, facts); found != nil || err != nil {
			t.Error(found, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
