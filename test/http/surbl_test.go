package http_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/test/internal/curttest"
)

// SURBL, which keeps lists of the hosts in unwanted mail, asks those who run redirectors
// for seven things: "Open Letter To Operators Of Redirection Sites",
// https://surbl.org/redirection-sites, as announced on 24 October 2011. Each has a test,
// by its number there.

// list writes a file of a blocklist and returns its path and how to change it.
func list(t *testing.T, lines string) (path string, change func(lines string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "surbl.txt")
	change = func(lines string) {
		t.Helper()
		curttest.Replace(t, path, lines+"\n")
	}
	change(lines)
	return path, change
}

func longURL(url string) string { return fmt.Sprintf(`{"long_url":%q}`, url) }

func TestSURBL1LinksAreCheckedAgainstBlocklists(t *testing.T) {
	t.Parallel()
	path, _ := list(t, "spam.example")
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_BLOCKLISTS=" + path}})
	for _, url := range []string{"https://spam.example/", "http://www.SPAM.example.:8080/x?y#z", "https://buy.cheap.spam.example/"} {
		if a := asAdmin(t, s, "POST", "/api/v1/links", longURL(url)); a.Status != 422 {
			t.Errorf("%s: %d %s", url, a.Status, a.Body)
		}
	}
	if a := asAdmin(t, s, "POST", "/api/v1/links", longURL("https://good.example/?to=spam.example")); a.Status != 201 {
		t.Errorf("a good one: %d %s", a.Status, a.Body)
	}
}

// When redirecting the link is asked what was found, and no list: a redirect waits for
// nobody.
func TestSURBL2LinksAreRecheckedPeriodically(t *testing.T) {
	t.Parallel()
	path, change := list(t, "spam.example")
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_BLOCKLISTS=" + path, "CURT_RECHECK=2s"}})
	make201(t, s, `{"long_url":"https://later.example/","custom_alias":"later"}`)
	make201(t, s, `{"long_url":"https://good.example/","custom_alias":"good"}`)
	if a := as(t, s, "GET", "/later", ""); a.Status != 302 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	change("later.example")
	await(t, 403, func() curttest.Answer { return as(t, s, "GET", "/later", "") })
	if a := asAdmin(t, s, "GET", "/api/v1/links/later", ""); !strings.Contains(string(a.Body), `"safety":"blocked"`) {
		t.Errorf("%s", a.Body)
	}
	if a := as(t, s, "GET", "/good", ""); a.Status != 302 {
		t.Errorf("another link: %d", a.Status)
	}
}

func TestSURBL3NoLinksAreMadeFromMaliciousAddresses(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_ANONYMOUS=true", "CURT_TRUSTED_PROXIES=127.0.0.0/8"}})
	create := func(from string) int {
		return as(t, s, "POST", "/api/v1/links", longURL("https://example.com/"), "X-Forwarded-For: "+from).Status
	}
	if got := create("192.0.2.7"); got != 201 {
		t.Fatal(got)
	}
	if a := asAdmin(t, s, "POST", "/api/v1/bans", `{"kind":"network","name":"192.0.2.0/24","safety":"blocked","reason":"spam"}`); a.Status != 201 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for from, want := range map[string]int{"192.0.2.7": 403, "192.0.2.200": 403, "::ffff:192.0.2.9": 403, "192.0.3.7": 201, "2001:db8::7": 201} {
		if got := create(from); got != want {
			t.Errorf("from %s: %d, want %d", from, got, want)
		}
	}
}

// The addresses that a URL names are looked up in every spelling. Those of a name would
// have to be asked for, which nothing does while a link is made.
func TestSURBL4TheAddressOfADestinationIsChecked(t *testing.T) {
	t.Parallel()
	path, _ := list(t, "192.0.2.66")
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_BLOCKLISTS=" + path}})
	for _, host := range []string{"192.0.2.66", "192.0.2.66.", "0300.0.0x2.66", "3221226050", "0xC0000242", "[::ffff:192.0.2.66]", "[64:ff9b::c000:242]"} {
		if a := asAdmin(t, s, "POST", "/api/v1/links", longURL("http://"+host+"/")); a.Status != 422 {
			t.Errorf("%s: %d %s", host, a.Status, a.Body)
		}
	}
	if a := asAdmin(t, s, "POST", "/api/v1/links", longURL("http://192.0.2.67/")); a.Status != 201 {
		t.Errorf("its neighbour: %d %s", a.Status, a.Body)
	}
}

func TestSURBL5NoLinkLeadsSilentlyToOtherRedirectors(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{})
	for i, url := range []string{"https://bit.ly/abc", "https://www.TinyURL.com/abc", "https://t.co/abc", "https://is.gd/abc"} {
		make201(t, s, fmt.Sprintf(`{"long_url":%q,"custom_alias":"chain-%d"}`, url, i))
		if a := as(t, s, "GET", fmt.Sprintf("/chain-%d", i), "", "Accept: text/html"); a.Status != 200 || effectOf(a).Location != "" || !effectOf(a).Onward {
			t.Errorf("%s: %d %s", url, a.Status, a.Body)
		}
	}
	_, port, _ := strings.Cut(s.Addr, ":")
	if a := asAdmin(t, s, "POST", "/api/v1/links", longURL("http://localhost:"+port+"/chain-0")); a.Status != 400 {
		t.Errorf("to this one: %d %s", a.Status, a.Body)
	}
}

// That somebody reads what comes to the address is the operator's, who is told where to
// register it; the words under which people look for it on a host are no link's.
func TestSURBL6AbuseHasAnAddress(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	if err != nil || !strings.Contains(string(text), "abuse.net") {
		t.Errorf("the operator is not told to register: %v", err)
	}
	s := curttest.Start(t, curttest.Options{})
	for _, word := range []string{"abuse", "report", "appeal"} {
		if a := asAdmin(t, s, "POST", "/api/v1/links", fmt.Sprintf(`{"long_url":"https://example.com/","custom_alias":%q}`, word)); a.Status != 409 {
			t.Errorf("%s: %d %s", word, a.Status, a.Body)
		}
	}
}

func TestSURBL7ARemovedLinkAnswers410(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{})
	make201(t, s, `{"long_url":"https://spam.example/","custom_alias":"gone"}`)
	decide(t, s, "gone", "blocked")
	if a := as(t, s, "GET", "/gone", ""); a.Status != 403 {
		t.Errorf("blocked: %d", a.Status)
	}
	if a := asAdmin(t, s, "DELETE", "/api/v1/links/gone", ""); a.Status != 204 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for _, accept := range []string{"*/*", "text/html"} {
		for _, path := range []string{"/gone", "/gone+", "/gone/qr"} {
			if a := as(t, s, "GET", path, "", "Accept: "+accept); a.Status != 410 {
				t.Errorf("%s for %s: %d", path, accept, a.Status)
			}
		}
	}
	if a := asAdmin(t, s, "POST", "/api/v1/links", `{"long_url":"https://good.example/","custom_alias":"gone"}`); a.Status != 409 {
		t.Errorf("the code was given to another: %d", a.Status)
	}
}
