// Package analyticstest proves readers of statistics with scripts.
//
// A script is a text file of two kinds of paragraphs, separated by empty lines:
//
//	load                              clicks, one per line
//	2026-03-14T10:00:00Z c1 from=10.0.0.1 ua=chrome ref=https://a.example/ lang=de
//	2026-03-14T10:00:30Z c1 head
//
//	eval totals c1 now=2026-03-14T12:00:00Z      a question, then the answer
//	clicks 1 humans 1 …
//
// The words of a click: from (see Places), ua (chrome, firefox, iphone, bot, curl), ref, lang, query;
// head, prefetch, qr; fallback, refused, orphan; and xN for N such clicks. The questions:
//
//	totals KEY [from=T] [to=T]
//	series KEY step=S [from=T] [to=T] [zone=Z] [all]
//	top KEY dimension=D,… [n=N] [from=T] [to=T]
//	clicks KEY…
//
// each with now=T. A series shows the points where something happened; with all it
// shows all. Every answer is also compared with a recount of the clicks themselves.
package analyticstest

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"curt/internal/clicks"
)

// command is one paragraph of a script.
type command struct {
	line   int
	clicks []clicks.Raw // of a load
	words  []string     // of an eval
	want   string
}

// parse reads a script.
func parse(t *testing.T, path string) (commands []command) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := 1
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		c := command{line: line}
		line += strings.Count(paragraph, "\n") + 2
		lines := strings.Split(strings.Trim(paragraph, "\n"), "\n")
		for len(lines) > 0 && strings.HasPrefix(lines[0], "#") {
			lines = lines[1:]
		}
		switch {
		case len(lines) == 0:
			continue
		case lines[0] == "load":
			for _, l := range lines[1:] {
				c.clicks = append(c.clicks, parseClicks(t, path, l)...)
			}
		case strings.HasPrefix(lines[0], "eval "):
			c.words = strings.Fields(lines[0])[1:]
			c.want = strings.Join(lines[1:], "\n")
		default:
			t.Fatalf("%s:%d: neither load nor eval: %s", path, c.line, lines[0])
		}
		commands = append(commands, c)
	}
	return commands
}

// userAgent returns the header of a short name.
func userAgent(name string) (ua string, ok bool) {
	switch name {
	case "chrome":
		return "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36", true
	case "firefox":
		return "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", true
	case "iphone":
		return "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1", true
	case "bot":
		return "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", true
	case "curl":
		return "curl/8.5.0", true
	}
	return "", false
}

func parseClicks(t *testing.T, path, line string) []clicks.Raw {
	t.Helper()
	words := strings.Fields(line)
	fail := func(what string) { t.Helper(); t.Fatalf("%s: %s in %q", path, what, line) }
	if len(words) < 2 {
		fail("no time and code")
	}
	at, err := time.Parse(time.RFC3339Nano, words[0])
	if err != nil {
		fail(err.Error())
	}
	chrome, _ := userAgent("chrome")
	c := clicks.Raw{
		Time: at.UnixMilli(), Code: []byte(words[1]), Outcome: clicks.Redirected,
		Addr: netip.MustParseAddr("192.0.2.1"), UserAgent: []byte(chrome),
	}
	repeat := 1
	for _, w := range words[2:] {
		if n, err := strconv.Atoi(strings.TrimPrefix(w, "x")); err == nil && strings.HasPrefix(w, "x") {
			repeat = n
			continue
		}
		if err := setWord(&c, w); err != nil {
			fail(err.Error())
		}
	}
	all := make([]clicks.Raw, repeat)
	for i := range all {
		all[i] = c
	}
	return all
}

func setWord(c *clicks.Raw, word string) error {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "from":
		addr, err := netip.ParseAddr(value)
		c.Addr = addr
		return err
	case "ua":
		ua, ok := userAgent(value)
		if !ok {
			return fmt.Errorf("user agent %q", value)
		}
		c.UserAgent = []byte(ua)
	case "ref":
		c.Referrer = []byte(value)
	case "lang":
		c.Language = []byte(value)
	case "query":
		c.Query = []byte(value)
	case "head":
		c.Flags |= clicks.Head
	case "prefetch":
		c.Flags |= clicks.Prefetch
	case "qr":
		c.Flags |= clicks.ViaQR
	case "fallback":
		c.Outcome = clicks.FellBack
	case "refused":
		c.Outcome = clicks.Refused
	case "orphan":
		c.Outcome = clicks.Orphan
	default:
		return fmt.Errorf("word %q", word)
	}
	return nil
}
