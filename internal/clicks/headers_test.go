package clicks_test

import (
	"strings"
	"testing"

	"curt/internal/clicks"
	"curt/internal/testkit"
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
		if got := clicks.HostOf(referrer); got != want {
			t.Errorf("host of %q = %q, want %q", referrer, got, want)
		}
	}
}

func TestPrimaryLanguage(t *testing.T) {
	for header, want := range map[string]string{
		"en-US,en;q=0.9": "en", "DE": "de", "fil-PH": "fil", "fr;q=1": "fr", "": "", "*": "", "e": "", "english": "", "12": "", "zh_CN": "zh",
	} {
		if got := clicks.LanguageOf(header); got != want {
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
		if got := clicks.UTMOf(query); got != want {
			t.Errorf("UTM of %q = %q, want %q", query, got, want)
		}
	}
}

func TestAgents(t *testing.T) {
	testkit.Unraced(t)
	if n := clicks.SpiderPatterns(); n < 5 {
		t.Fatalf("the bot list has %d patterns: its shape has changed", n)
	}
	const webkit = " AppleWebKit/537.36 (KHTML, like Gecko) "
	for _, test := range []struct {
		ua, device, browser, os string
		bot                     bool
	}{
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64)" + webkit + "Chrome/126.0.0.0 Safari/537.36", "desktop", "Chrome", "Windows", false},
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64)" + webkit + "Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0", "desktop", "Edge", "Windows", false},
		{"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1", "mobile", "Safari", "iOS", false},
		{"Mozilla/5.0 (Linux; Android 10; K)" + webkit + "Chrome/126.0.0.0 Mobile Safari/537.36", "mobile", "Chrome", "Android", false},
		{"Mozilla/5.0 (Linux; Android 13; SM-X700)" + webkit + "Chrome/126.0.0.0 Safari/537.36", "tablet", "Chrome", "Android", false},
		{"Mozilla/5.0 (iPad; CPU OS 16_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/16.6 Mobile/15E148 Safari/604.1", "tablet", "Safari", "iOS", false},
		{"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "desktop", "Firefox", "Linux", false},
		{"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", "bot", "(other)", "(other)", true},
		{"Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", "bot", "(other)", "(other)", true},
		{"WhatsApp/2.23.20.0", "bot", "(other)", "(other)", true},
		{"facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "bot", "(other)", "(other)", true},
		{"curl/8.5.0", "bot", "(other)", "(other)", true},
		{"python-requests/2.31.0", "bot", "(other)", "(other)", true},
		{"Go-http-client/1.1", "bot", "(other)", "(other)", true},
		{"Mozilla/5.0" + webkit + "compatible; GPTBot/1.0; +https://openai.com/gptbot)", "bot", "(other)", "(other)", true},
		{"Mozilla/5.0 (X11; Linux x86_64)" + webkit + "HeadlessChrome/120.0.0.0 Safari/537.36", "bot", "(other)", "Linux", true},
		{"", "bot", "(other)", "(other)", true},
	} {
		device, browser, os, bot := clicks.AgentOf(test.ua)
		if bot {
			browser = "(other)"
		}
		if device != test.device || browser != test.browser || os != test.os || bot != test.bot {
			t.Errorf("%s\n got %s, %s, %s, bot %v\nwant %s, %s, %s, bot %v", test.ua, device, browser, os, bot,
				test.device, test.browser, test.os, test.bot)
		}
	}
}

func TestDimensionNames(t *testing.T) {
	for d := range clicks.Dimension(clicks.NumDimensions) {
		if got, ok := clicks.ParseDimension(d.String()); !ok || got != d {
			t.Errorf("%v is read as %v", d, got)
		}
	}
	if _, ok := clicks.ParseDimension("address"); ok {
		t.Error("there is a dimension of addresses")
	}
}
