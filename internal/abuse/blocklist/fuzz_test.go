package blocklist_test

import (
	"slices"
	"strings"
	"testing"

	"curt/internal/abuse/blocklist"
	"curt/internal/weburl"
)

// FuzzList: whatever a file holds, it is read the same way twice, and an entry that is
// kept is one that some URL is asked about.
func FuzzList(f *testing.F) {
	for _, text := range []string{
		"0.0.0.0 evil.example", "*.münchen.example", "::1 a.b", "1.2.3.4", "xn--a.b # c", "a。b", sum,
		"https://evil.example/a?b#c", "http://[::1]:81/%2561//..", "http://127.1:80/?&",
		"[Adblock]\n||evil.example^$all\n@@||good.example/a^\n|https://a.b/c|\nx##y\n-ad-",
		"# id,url,url_status\n\"1\",\"https://evil.example/\",\"offline\"\n\"2\",\"https://b.example/\"\"\",\"online\"\n1,\"", "url,x\nhttps://a.b/,",
	} {
		f.Add(text, false)
		f.Add(text+"\r\n", true)
	}
	f.Fuzz(func(t *testing.T, text string, turned bool) {
		text += "\n"
		meant, passed, strange, err := blocklist.Meanings(strings.NewReader(text), turned)
		again, passedAgain, strangeAgain, errAgain := blocklist.Meanings(strings.NewReader(text), turned)
		if !slices.Equal(meant, again) || passed != passedAgain || strange != strangeAgain || (err == nil) != (errAgain == nil) {
			t.Fatalf("%q then %q", meant, again)
		}
		for _, m := range meant {
			kind, rest, _ := strings.Cut(strings.TrimPrefix(m, "not "), " ")
			if turned && strings.HasPrefix(m, "not ") {
				t.Fatalf("%q is an exception of an allow-list", m)
			}
			switch kind {
			case "hash":
				continue
			case "host":
				if strings.Contains(rest, ":") {
					rest = "[" + rest + "]"
				}
			}
			u, err := weburl.Parse("http://" + rest)
			if err != nil {
				t.Fatalf("%q: %v", m, err)
			}
			switch {
			case kind == "host" && blocklist.Names(u)[0] != strings.Trim(rest, "[]"):
				t.Fatalf("%q, and a link to it is asked about as %q", m, blocklist.Names(u))
			case kind != "host" && strings.ReplaceAll(blocklist.Expression(u), "|", "") != strings.ReplaceAll(rest, "|", ""):
				t.Fatalf("%q, and a link to it is asked about as %q", m, blocklist.Expression(u))
			}
		}
	})
}
