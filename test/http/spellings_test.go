package http_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/test/internal/curttest"
)

// TestEverySpellingIsRefused sends a blocked host in the ways that browsers read as that
// host. None becomes a link, and each that is a possible link is refused by the list.
func TestEverySpellingIsRefused(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "bad.txt")
	if err := os.WriteFile(list, []byte("||evil.example^\nmünchen.example\n127.0.0.1\nhttps://path.example/a/b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_BLOCKLISTS=" + list}})
	create := func(raw string) curttest.Answer {
		body, err := json.Marshal(map[string]string{"long_url": raw})
		if err != nil {
			t.Fatal(err)
		}
		return asAdmin(t, s, "POST", "/api/v1/links", string(body))
	}
	listed := []string{
		"http://evil.example", "HTTP://EVIL.EXAMPLE/", "https://Evil.Example./", "https:evil.example", "https:/evil.example", `https:\\evil.example\x`, `https:/\evil.example`,
		"https://////evil.example", "  https://evil.example  ", `https://evil.example\@good.example/`, "https://evil.example?x", "https://evil.example#x",
		"https://evil.example:443/", "https://evil.example:8443/", "https://@evil.example/", "https://:@evil.example/",
		"https://%65vil.example/", "https://evil%2Eexample/", "https://%45%56%49%4C.example/", "https://evil%E3%80%82example/",
		"https://ｅｖｉｌ.example/", "https://evil。example/", "https://evil．example/", "https://evil｡example/", "https://ev\u00adil.example/", "https://𝐞𝐯𝐢𝐥.example/", "https://ⓔⓥⓘⓛ.example/",
		"https://WWW.evil.example/", "https://a.b.evil.example./",
		"https://münchen.example/", "https://MÜNCHEN.example/", "https://xn--mnchen-3ya.example/", "https://XN--MNCHEN-3YA.EXAMPLE/", "https://mu\u0308nchen.example/", "https://m%C3%BCnchen.example/",
		"https://path.example/a/b", "HTTP://PATH.example:80//a/./%62/c?x", "https://path.example/%2561/b",
	}
	for _, raw := range listed {
		if a := create(raw); a.Status < 400 || a.Status >= 500 || !strings.Contains(string(a.Body), "/problems/destination") {
			t.Errorf("%q: %d %s", raw, a.Status, a.Body)
		}
	}
	for _, raw := range []string{
		"http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.01./", "http://127%2e0%2E1/", "http://１２７.０.０.１/", "http://[::ffff:127.0.0.1]/", "http://[::127.0.0.1]/",
		"https://user@evil.example/", "https://good.example:x@evil.example/", "https://ev\til.example/", "https://evil\n.example/", "https:/\t/evil.example/", "\x01https://evil.example/", "//evil.example/",
	} {
		if a := create(raw); a.Status < 400 || a.Status >= 500 {
			t.Errorf("%q: %d %s", raw, a.Status, a.Body)
		}
	}
	if a := create("https://good.example/evil.example"); a.Status != http.StatusCreated {
		t.Errorf("another host: %d %s", a.Status, a.Body)
	}
}
