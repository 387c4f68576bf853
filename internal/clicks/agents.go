package clicks

import (
	"strings"

	"github.com/mileusna/useragent"
)

// agent is what a user agent tells. The fields are indices of the name lists
// below, so that an agent is four bytes and a stranger cannot invent browsers.
type agent struct {
	device, browser, os uint8
	bot                 bool
}

const (
	deviceOther uint8 = iota
	deviceDesktop
	deviceMobile
	deviceTablet
	deviceBot
)

func deviceNames() []string { return []string{Other, "desktop", "mobile", "tablet", "bot"} }

// browserNames are the families that are told apart, by the names that the parser
// gives them. The first stands for all others.
func browserNames() []string {
	return []string{
		Other, useragent.Chrome, useragent.Safari, useragent.Firefox, useragent.Edge, useragent.Opera,
		useragent.OperaMini, useragent.OperaTouch, useragent.Vivaldi, useragent.SamsungBrowser,
		useragent.InternetExplorer, useragent.FacebookApp, useragent.InstagramApp, useragent.TiktokApp,
		"Huawei Browser", "Miui Browser", "Android browser", "UCBrowser", "YaBrowser", "DuckDuckGo",
		"Brave", "Whale", "QQBrowser", "MicroMessenger", "Silk", "Ecosia", "LinkedInApp", "Snapchat",
		"Pinterest", "GSA", "Line", "Puffin", "Epiphany", "SeaMonkey", "PaleMoon", useragent.BlackBerry,
		useragent.NetFront,
	}
}

func osNames() []string {
	return []string{
		Other, useragent.Windows, useragent.Android, useragent.IOS, useragent.MacOS, useragent.Linux,
		useragent.ChromeOS, useragent.FreeBSD, useragent.Harmony, useragent.WindowsPhone, useragent.BlackBerry,
	}
}

// agentNames are the lists at hand.
type agentNames struct{ device, browser, os []string }

// agents parses user agents and remembers the answers. A parse costs microseconds
// and the bot list's patterns cost up to 0.3 ms, a look-up 50 ns; the user agents
// of real traffic repeat. Owned by one goroutine.
type agents struct {
	known    remembered[agent]
	crawlers remembered[bool] // by normalised user agent
	bots     bots
	browsers map[string]uint8
	systems  map[string]uint8
}

func newAgents() *agents {
	index := func(names []string) map[string]uint8 {
		m := make(map[string]uint8, len(names))
		for i, n := range names {
			m[n] = uint8(i)
		}
		return m
	}
	return &agents{
		known: remembered[agent]{limit: 4096}, crawlers: remembered[bool]{limit: 2048},
		browsers: index(browserNames()), systems: index(osNames()),
	}
}

func (a *agents) parse(ua []byte) agent {
	if found, ok := a.known.get(ua); ok {
		return found
	}
	found := a.classify(string(ua))
	a.known.put(string(ua), found)
	return found
}

func (a *agents) classify(ua string) agent {
	u := useragent.Parse(ua)
	found := agent{browser: a.browsers[u.Name], os: a.systems[u.OS]}
	switch {
	case u.Bot, a.crawler(ua), !looksLikeBrowser(ua):
		return agent{device: deviceBot, os: found.os, bot: true}
	case u.Tablet, u.IsAndroid() && !strings.Contains(ua, "Mobi"): // Android says Mobile on phones only
		found.device = deviceTablet
	case u.Mobile:
		found.device = deviceMobile
	case u.Desktop:
		found.device = deviceDesktop
	}
	return found
}

// looksLikeBrowser reports whether a user agent begins as every browser's has since
// 1994. What does not is curl, a library, a preview: nobody clicked.
func looksLikeBrowser(ua string) bool {
	return strings.HasPrefix(ua, "Mozilla/") || strings.HasPrefix(ua, "Opera/") ||
		strings.HasPrefix(ua, "Instagram ") || strings.HasPrefix(ua, "MobileSafari/")
}

// crawler asks the text itself, and then the bot list. Versions make most of the difference between user
// agents and none to a bot's name, so the list is asked about the text with every
// run of digits made one zero, and without brands that sound like bots.
func (a *agents) crawler(ua string) bool {
	text := maskBrands(zeroDigits(ua))
	if found, ok := a.crawlers.get(text); ok {
		return found
	}
	found := saysRobot(text) || a.bots.match(string(text))
	a.crawlers.put(string(text), found)
	return found
}

func zeroDigits(s string) []byte {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		c := s[i]
		if '0' <= c && c <= '9' {
			c = '0'
			if i > 0 && '0' <= s[i-1] && s[i-1] <= '9' {
				continue
			}
		}
		b = append(b, c)
	}
	return b
}

// remembered is a bounded memory of answers in two generations: when the young one
// is half of the limit, it becomes the old one, and what nobody asked for since
// the last time is gone. The zero value with a limit is usable.
type remembered[V any] struct {
	limit      int
	young, old map[string]V
}

func (r *remembered[V]) get(key []byte) (V, bool) {
	if v, ok := r.young[string(key)]; ok {
		return v, true
	}
	v, ok := r.old[string(key)]
	if ok {
		r.put(string(key), v)
	}
	return v, ok
}

func (r *remembered[V]) put(key string, v V) {
	if r.young == nil || len(r.young) >= r.limit/2 {
		r.old, r.young = r.young, make(map[string]V)
	}
	r.young[key] = v
}
