package headers_test

import (
	"strings"
	"testing"

	"curt/internal/clicks/headers"
)

func TestReferrerHost(t *testing.T) {
	for referrer, want := range map[string]string{
		"https://www.Example.com/path?q#f":      "example.com",
		"http://example.com:8080":               "example.com",
		"https://user:pw@example.com/":          "example.com",
		"https://example.com.":                  "example.com",
		"https://[2001:db8::1]:80/x":            "[2001:db8::1]",
		"android-app://com.google.android.gm/":  "com.google.android.gm",
		"":                                      "",
		"https://":                              "",
		"about:blank":                           "",
		"javascript://example.com":              "",
		"https://(other)/":                      "",
		"https://ex ample.com/":                 "",
		"https://a\\b.example/":                 "a",
		"https://" + strings.Repeat("a", 300):   "",
		"https://xn--bcher-kva.example/Bücher/": "xn--bcher-kva.example",
	} {
		if got := hostOf(referrer); got != want {
			t.Errorf("host of %q = %q, want %q", referrer, got, want)
		}
	}
}

func TestPrimaryLanguage(t *testing.T) {
	for header, want := range map[string]string{
		"en-US,en;q=0.9": "en", "DE": "de", "fil-PH": "fil", "fr;q=1": "fr", "": "", "*": "", "e": "", "english": "", "12": "", "zh_CN": "zh",
	} {
		if got := languageOf(header); got != want {
			t.Errorf("language of %q = %q, want %q", header, got, want)
		}
	}
}

func TestUTM(t *testing.T) {
	for query, want := range map[string][5]string{
		"utm_source=news+letter&utm_medium=e%20mail&utm_campaign=x&utm_term=t&utm_content=c": {"news letter", "e mail", "x", "t", "c"},
		"a=b&utm_source=first&utm_source=second":                                             {"first"},
		"utm_source=%28other%29":                                                             {"other"},
		"utm_source=a%00b%0d%0ac":                                                            {"abc"},
		"utm_source=%zz":                                                                     {"%zz"},
		"utm_source=%ff%fe":                                                                  {""},
		"utm_source=" + strings.Repeat("ä", 100):                                             {strings.Repeat("ä", 64)},
		"xutm_source=a&utm_nothing=b&utm_":                                                   {},
	} {
		if got := utmOf(query); got != want {
			t.Errorf("UTM of %q = %q, want %q", query, got, want)
		}
	}
}

func hostOf(s string) string { var b [256]byte; return string(headers.ReferrerHost([]byte(s), b[:])) }

func languageOf(s string) string { return headers.LanguageName(headers.PrimaryLanguage([]byte(s))) }

func utmOf(s string) [5]string { u, _ := headers.ParseUTM([]byte(s)); return u }
