package weburl_test

import (
	"testing"

	"curt/internal/weburl"
)

func TestSplitFindsTheHost(t *testing.T) {
	for href, want := range map[string][3]string{
		"https://example.com/":                 {"https://", "example.com", "/"},
		"https://example.com:8443/a?b#c":       {"https://", "example.com", ":8443/a?b#c"},
		"http://[2001:db8::1]/x":               {"http://", "[2001:db8::1]", "/x"},
		"http://[2001:db8::1]:81/x":            {"http://", "[2001:db8::1]", ":81/x"},
		"https://a.example?b@c.example:1":      {"https://", "a.example", "?b@c.example:1"},
		"https://bank.example@evil.example/p@": {"https://bank.example@", "evil.example", "/p@"},
		"https://a.example":                    {"https://", "a.example", ""},
		"javascript:alert(1)":                  {"", "", "javascript:alert(1)"},
		"":                                     {},
	} {
		before, host, after := weburl.Split(href)
		if got := [3]string{before, host, after}; got != want {
			t.Errorf("%q: %q, want %q", href, got, want)
		}
	}
}

func TestUnicodeSpellsALabelsOut(t *testing.T) {
	for host, want := range map[string]string{
		"xn--bcher-kva.example": "bücher.example", "xn--80ak6aa92e.com": "аррӏе.com", "xn--fiq228c.example": "中文.example",
		"example.com": "", "xn--": "", "xn--a": "", "xn--example.com": "", "": "",
	} {
		if got := weburl.Unicode(host); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}
