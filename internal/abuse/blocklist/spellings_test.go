package blocklist_test

import (
	"errors"
	"testing"

	"curt/internal/abuse/abusetest"
	"curt/internal/abuse/blocklist"
	"curt/internal/weburl"
)

// spellings are ways to write a URL on evil.example, münchen.example, straße.example or
// 127.0.0.1, all of which browsers read alike.
func spellings() []string {
	return []string{
		// case, dots, slashes, what stands around
		"http://evil.example", "HTTP://EVIL.EXAMPLE/", "hTTps://eViL.eXaMpLe/x", "https://Evil.Example./", "https:evil.example", "https:/evil.example", `https:\\evil.example\x`,
		`https:/\evil.example`, "https://////evil.example", "  https://evil.example  ", "https://evil.example?x", "https://evil.example#x", `https://evil.example\@good.example/`,
		// ports and empty credentials
		"https://evil.example:443/", "https://evil.example:8443/", "https://evil.example:/", "https://evil.example:0080/", "https://@evil.example/", "https://:@evil.example/",
		// escapes
		"https://%65vil.example/", "https://evil%2Eexample/", "https://evil%2eexample%2E/", "https://%45%56%49%4C.example/", "https://evil%E3%80%82example/", "https://%EF%BD%85vil.example/",
		// what UTS 46 maps
		"https://ｅｖｉｌ.example/", "https://evil。example/", "https://evil．example/", "https://evil｡example/", "https://ev\u00adil.example/", "https://e\u200bvil.example/", "https://𝐞𝐯𝐢𝐥.example/",
		"https://ⓔⓥⓘⓛ.example/", "https://ᵉᵛⁱˡ.example/", "https://eⅵl.example/", "https://evil.ｅｘａｍｐｌｅ/", "https://Ｅvil.example/",
		// below it
		"https://WWW.evil.example/", "https://a.b.evil.example./", "https://good.example.evil.example/",
		// A-labels
		"https://münchen.example/", "https://MÜNCHEN.example/", "https://xn--mnchen-3ya.example/", "https://XN--MNCHEN-3YA.EXAMPLE/", "https://mu\u0308nchen.example/", "https://m%C3%BCnchen.example/",
		"https://straße.example/", "https://xn--strae-oqa.example/",
		// addresses
		"http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0x7f.1/", "http://0x7F000001/", "http://0177.0.0.1/", "http://0177.0.0.01./", "http://017700000001/",
		"http://0x7f.0x0.0x0.0x1/", "http://127.0.0.1.:80/", "http://127%2e0.0%2E1/", "http://１２７.０.０.１/", "http://127。0。0。1/",
		"http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[0:0:0:0:0:FFFF:7F00:0001]:81/", "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
	}
}

// refused are spellings that browsers take and that no link may have.
func refused() map[string]error {
	return map[string]error{
		"https://user@evil.example/": weburl.ErrCredentials, "https://good.example:x@evil.example/": weburl.ErrCredentials, "https://good.example%2F@evil.example/": weburl.ErrCredentials,
		"https://ev\til.example/": weburl.ErrControl, "https://evil\n.example/": weburl.ErrControl, "ht\rtps://evil.example/": weburl.ErrControl, "https:/\t/evil.example/": weburl.ErrControl,
		"\x01https://evil.example/": weburl.ErrControl, "//evil.example/": weburl.ErrScheme, "javascript:location='https://evil.example/'": weburl.ErrScheme,
	}
}

// Hosts that are listed in one way are caught in each, in whatever format they are listed.
func TestEverySpellingIsCaught(t *testing.T) {
	for name, lines := range map[string][]string{
		"hosts":   {"evil.example", "xn--mnchen-3ya.example", "straße.example", "127.0.0.1"},
		"Adblock": {"||EVIL.example^", "||münchen.example^$all", "||xn--strae-oqa.example^", "||127.1^"},
	} {
		b := open(t, abusetest.Write(t, "bad.txt", lines...))
		for _, raw := range spellings() {
			if rule := forbids(t, b, raw); rule.List != "bad" {
				t.Errorf("%s: %q is not caught", name, raw)
			}
		}
	}
	for raw, want := range refused() {
		if _, err := weburl.Parse(raw); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", raw, err, want)
		}
	}
	if n := len(spellings()) + len(refused()); n < 70 {
		t.Errorf("only %d spellings", n)
	}
}

// What looks like a listed host to a careless reader, and is another's.
func TestOtherHostsAreNotCaught(t *testing.T) {
	b := open(t, abusetest.Write(t, "bad.txt", "evil.example", "127.0.0.1"))
	for _, raw := range []string{
		"https://evil.example.com/", "https://notevil.example/", "https://evil-example/", "https://good.example/evil.example", "https://good.example/?u=https://evil.example/",
		"https://good.example#@evil.example/", "https://good.example/@evil.example", `https://good.example\@evil.example`, "http://127.0.0.2/", "http://[::1]/", "https://127.0.0.1.example/", "https://éвил.example/",
	} {
		if rule := forbids(t, b, raw); rule != (blocklist.Rule{}) {
			t.Errorf("%q is forbidden by %v", raw, rule)
		}
	}
}
