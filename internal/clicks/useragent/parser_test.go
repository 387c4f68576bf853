package useragent_test

import (
	"strings"
	"testing"

	"curt/internal/clicks"
	"curt/internal/clicks/useragent"
	"curt/internal/testkit"
)

// TestNumbersOfNamesStay: they are in every log. Lists grow at their ends.
func TestNumbersOfNamesStay(t *testing.T) {
	device, browser, system, known := useragent.StoredNames()
	if got := [3]int{len(device), len(browser), len(system)}; got != known {
		t.Errorf("lists of %v names, of which %v are read", got, known)
	}
	for _, c := range []struct {
		list []string
		want string
	}{
		{device, "(other) desktop mobile tablet bot"},
		{browser, "(other) Chrome Safari Firefox Edge Opera Opera Mini Opera Touch Vivaldi Samsung Browser Internet Explorer Facebook App Instagram App TikTok App " +
			"Huawei Browser Miui Browser Android browser UCBrowser YaBrowser DuckDuckGo Brave Whale QQBrowser MicroMessenger Silk Ecosia LinkedInApp Snapchat " +
			"Pinterest GSA Line Puffin Epiphany SeaMonkey PaleMoon BlackBerry NetFront"},
		{system, "(other) Windows Android iOS macOS Linux ChromeOS FreeBSD Harmony Windows Phone BlackBerry"},
	} {
		if got := strings.Join(c.list, " "); !strings.HasPrefix(got, c.want) {
			t.Errorf("the numbers of names changed:\n%s\n%s", got, c.want)
		}
	}
	for _, reason := range []clicks.BotReason{"", clicks.BotNamed, clicks.BotListed, clicks.BotNoBrowser} {
		a := useragent.NewAgent("tablet", "Whale", "Harmony", reason)
		if a.Device() != "tablet" || a.Browser() != "Whale" || a.OS() != "Harmony" || a.Reason() != reason || a.Bot() != (reason != "") || !a.Parsed() {
			t.Errorf("%q: %+v", reason, a)
		}
	}
	if a := useragent.NewAgent("glasses", "", "", "x"); a.Device() != clicks.Other || !a.Bot() {
		t.Errorf("of a release to come: %+v", a)
	}
}

// TestAFloodOfNewAgentsIsNotLookedUp: who has no time for the bot list goes by what user agents
// say themselves, and looks up what comes again.
func TestAFloodOfNewAgentsIsNotLookedUp(t *testing.T) {
	p := useragent.NewParser()
	p.Begin(1)
	parse := func(ua string) (useragent.Agent, uint64) {
		a := p.Parse([]byte(ua)).Agent
		_, unlisted := p.Parsed()
		return a, unlisted
	}
	listed := "Mozilla/5.0 (X11; Linux x86_64) heritrix/3.4 Gecko"
	parse("Mozilla/5.0 (X11; Linux x86_64) Gecko takes the time there was")
	if a, n := parse(listed); a.Bot() || n != 1 {
		t.Errorf("%+v, %d not looked up", a, n)
	}
	if a, n := parse("Mozilla/5.0 (compatible; examplebot/2.0)"); !a.Bot() || n != 1 {
		t.Errorf("one that says so: %+v, %d not looked up", a, n)
	}
	p.Begin(1)
	if a, n := parse(listed); !a.Bot() || n != 1 {
		t.Errorf("later: %+v, %d not looked up", a, n)
	}
}

func TestAgents(t *testing.T) {
	testkit.Unraced(t)
	if n := useragent.SpiderPatterns(); n < 5 {
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
		agent := useragent.NewParser().Parse([]byte(test.ua)).Agent
		device, browser, os, bot := agent.Device(), agent.Browser(), agent.OS(), agent.Bot()
		if bot {
			browser = "(other)"
		}
		if device != test.device || browser != test.browser || os != test.os || bot != test.bot {
			t.Errorf("%s\n got %s, %s, %s, bot %v\nwant %s, %s, %s, bot %v", test.ua, device, browser, os, bot,
				test.device, test.browser, test.os, test.bot)
		}
	}
}
