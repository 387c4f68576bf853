package clicks

import (
	"strings"
	"time"

	"github.com/mileusna/useragent"
)

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
	known    remembered[told]
	crawlers remembered[bool] // by normalised user agent
	bots     bots
	browsers map[string]uint8
	systems  map[string]uint8

	// For whoever must not be late. Up to patience, if it is set, is spent on the bot list
	// between two calls of begin; user agents that are new then are not looked up in it.
	patience, spent time.Duration
	parsed          uint64 // user agents that were not remembered
	unlisted        uint64 // of those, not looked up
}

// begin gives the bot list its time anew.
func (a *agents) begin() { a.spent = 0 }

func newAgents() *agents {
	index := func(names []string) map[string]uint8 {
		m := make(map[string]uint8, len(names))
		for i, n := range names {
			m[n] = uint8(i)
		}
		return m
	}
	return &agents{
		known: remembered[told]{limit: 4096}, crawlers: remembered[bool]{limit: 2048},
		browsers: index(browserNames()), systems: index(osNames()),
	}
}

// of returns what is told by an event: what the log has of its user agent, or the whole of it,
// where that was kept.
func (a *agents) of(e *Event) Agent {
	if e.Agent.Known() {
		return e.Agent
	}
	return a.parse(e.UserAgent).Agent
}

func (a *agents) parse(ua []byte) told {
	if found, ok := a.known.get(ua); ok {
		return found
	}
	a.parsed++
	found, sure := a.classify(string(ua))
	if sure {
		a.known.put(string(ua), found)
	}
	return found
}

// classify is not sure of what the bot list was not asked about.
func (a *agents) classify(ua string) (found told, sure bool) {
	u := useragent.Parse(ua)
	found = told{Agent: Agent{browser: a.browsers[u.Name], os: a.systems[u.OS], kind: person}}
	listed := false
	if sure = u.Bot; !sure {
		listed, sure = a.crawler(ua)
	}
	switch {
	case u.Bot:
		found.kind = namedBot
	case listed:
		found.kind = listedBot
	case !looksLikeBrowser(ua):
		found.kind = noBrowser
	}
	if found.Bot() {
		found.device, found.browser = deviceBot, 0
		found.name = Plain(u.Name[:min(len(u.Name), maxBotName)])
		return found, sure
	}
	switch {
	case u.Tablet, u.IsAndroid() && !strings.Contains(ua, "Mobi"): // Android says Mobile on phones only
		found.device = deviceTablet
	case u.Mobile:
		found.device = deviceMobile
	case u.Desktop:
		found.device = deviceDesktop
	}
	return found, sure
}

// looksLikeBrowser reports whether a user agent begins as every browser's has since
// 1994. What does not is curl, a library, a preview: nobody clicked.
func looksLikeBrowser(ua string) bool {
	return strings.HasPrefix(ua, "Mozilla/") || strings.HasPrefix(ua, "Opera/") ||
		strings.HasPrefix(ua, "Instagram ") || strings.HasPrefix(ua, "MobileSafari/")
}

// crawler asks the text itself, and then the bot list. Versions make most of the difference between user
// agents and none to a bot's name, so the list is asked about the text with every
// run of digits made one zero, and without brands that sound like bots. It is not sure when there
// was no time left for the list.
func (a *agents) crawler(ua string) (found, sure bool) {
	text := maskBrands(zeroDigits(ua))
	if found, ok := a.crawlers.get(text); ok {
		return found, true
	}
	if found = saysRobot(text); !found {
		if found, sure = a.listed(string(text)); !sure {
			return false, false
		}
	}
	a.crawlers.put(string(text), found)
	return found, true
}

// listed asks the bot list, while there is time.
func (a *agents) listed(text string) (found, sure bool) {
	if a.patience == 0 {
		return a.bots.match(text), true
	}
	if a.spent >= a.patience {
		a.unlisted++
		return false, false
	}
	began := time.Now()
	found = a.bots.match(text)
	a.spent += time.Since(began)
	return found, true
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
