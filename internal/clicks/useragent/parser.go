// Package useragent reads what a user agent tells: device, browser, operating system, and
// whether it is a bot. [Parser] is for one goroutine, [Classifier] for many.
//
// Read parser.go first, then bots.go for the rules that make a bot.
package useragent

import (
	"strings"
	"sync"
	"time"

	"github.com/mileusna/useragent"

	"curt/internal/clicks"
)

const (
	deviceOther uint8 = iota
	deviceDesktop
	deviceMobile
	deviceTablet
	deviceBot
)

func deviceNames() []string { return []string{clicks.Other, "desktop", "mobile", "tablet", "bot"} }

// browserNames are the families that are distinguished, by the names that the parser
// gives them. The first stands for all others.
func browserNames() []string {
	return []string{
		clicks.Other, useragent.Chrome, useragent.Safari, useragent.Firefox, useragent.Edge, useragent.Opera,
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
		clicks.Other, useragent.Windows, useragent.Android, useragent.IOS, useragent.MacOS, useragent.Linux,
		useragent.ChromeOS, useragent.FreeBSD, useragent.Harmony, useragent.WindowsPhone, useragent.BlackBerry,
	}
}

// Names are the names of the numbers of Agents.
type Names struct{ Device, Browser, OS []string }

// AllNames returns the lists.
func AllNames() Names { return Names{deviceNames(), browserNames(), osNames()} }

// Parser parses user agents and remembers the answers. A parse costs microseconds
// and the bot list's patterns cost up to 0.3 ms, a look-up 50 ns; the user agents
// of real traffic repeat. Owned by one goroutine.
type Parser struct {
	known    remembered[Result]
	crawlers remembered[bool] // by normalised user agent
	bots     bots
	browsers map[string]uint8
	systems  map[string]uint8

	budget, spent time.Duration
	parsed        uint64
	unlisted      uint64
}

// Begin begins a period in which up to budget is spent on the bot list: user agents that are
// new when it is used up are judged without the list. Without Begin there is no bound.
func (a *Parser) Begin(budget time.Duration) { a.budget, a.spent = budget, 0 }

// Parsed returns how many user agents were not remembered, and how many of those were not
// looked up in the bot list.
func (a *Parser) Parsed() (all, unlisted uint64) { return a.parsed, a.unlisted }

// NewParser returns a Parser that has read nothing yet.
func NewParser() *Parser {
	index := func(names []string) map[string]uint8 {
		m := make(map[string]uint8, len(names))
		for i, n := range names {
			m[n] = uint8(i)
		}
		return m
	}
	return &Parser{
		known: remembered[Result]{limit: 4096}, crawlers: remembered[bool]{limit: 2048},
		browsers: index(browserNames()), systems: index(osNames()),
	}
}

// Parse returns what a user agent tells.
func (a *Parser) Parse(ua []byte) Result {
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
func (a *Parser) classify(ua string) (found Result, sure bool) {
	u := useragent.Parse(ua)
	found = Result{Agent: Agent{browser: a.browsers[u.Name], os: a.systems[u.OS], kind: person}}
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
		found.Name = clicks.Plain(u.Name[:min(len(u.Name), maxBotName)])
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
// 1994. What does not is curl, a library, a preview: no person clicked.
func looksLikeBrowser(ua string) bool {
	return strings.HasPrefix(ua, "Mozilla/") || strings.HasPrefix(ua, "Opera/") ||
		strings.HasPrefix(ua, "Instagram ") || strings.HasPrefix(ua, "MobileSafari/")
}

// crawler asks the text itself, and then the bot list. Versions make most of the difference between user
// agents and none to a bot's name, so the list is asked about the text with every
// run of digits made one zero, and without brands that sound like bots. It is not sure when there
// was no time left for the list.
func (a *Parser) crawler(ua string) (found, sure bool) {
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
func (a *Parser) listed(text string) (found, sure bool) {
	if a.budget == 0 {
		return a.bots.match(text), true
	}
	if a.spent >= a.budget {
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
// is half of the limit, it becomes the old one, and what was not used since
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

// Classifier distinguishes robots from people by the rules that Fold counts by, for decisions
// that are made before a click is counted. It is safe for many goroutines, and
// waits for a lock: redirects use it for the few links whose clicks are bounded.
type Classifier struct {
	mu     sync.Mutex
	parser *Parser // guarded by mu
}

// NewClassifier returns a list that has read nothing yet.
func NewClassifier() *Classifier {
	return &Classifier{parser: NewParser()}
}

// IsBot reports whether the user agent is a robot's. A user agent longer than what
// is kept of a click is judged by its beginning, as there.
func (b *Classifier) IsBot(userAgent string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parser.Parse([]byte(userAgent[:min(len(userAgent), MaxLength)])).Bot()
}

// Parse returns what a user agent tells.
func (b *Classifier) Parse(userAgent []byte) Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parser.Parse(userAgent)
}
