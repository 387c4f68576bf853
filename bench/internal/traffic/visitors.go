package traffic

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"strings"
)

// agents are the User-Agent headers of visitors, one a line after its weight:
// phones lead, desktops follow, and about one request in eight is a program that
// says so (link previews, crawlers, scripts).
const agents = `
14 Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1
6 Mozilla/5.0 (iPhone; CPU iPhone OS 17_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.7 Mobile/15E148 Safari/604.1
5 Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Instagram 389.0.0.22.77 (iPhone15,3; iOS 18_5; en_GB; en; scale=3.00; 1290x2796; 745123456)
4 Mozilla/5.0 (iPad; CPU OS 17_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/138.0.7204.156 Mobile/15E148 Safari/604.1
16 Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile Safari/537.36
6 Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36
4 Mozilla/5.0 (Linux; Android 14; SM-A546B Build/UP1A.231005.007; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/138.0.7204.157 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/523.0.0.44.91;]
2 Mozilla/5.0 (Android 14; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0
15 Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36
5 Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36 Edg/138.0.0.0
3 Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0
5 Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15
4 Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36
2 Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
3 Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)
2 facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)
2 Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)
1 Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)
1 Twitterbot/1.0
1 WhatsApp/2.23.20.0
1 curl/8.14.1
1 python-requests/2.32.4
`

// referrers are the Referer headers, one a line after its weight; "-" is none,
// which apps and mail programs send.
const referrers = `
40 -
10 https://www.google.com/
9 https://l.facebook.com/
8 https://l.instagram.com/
7 https://t.co/
4 https://www.linkedin.com/
4 android-app://com.google.android.gm/
3 https://www.reddit.com/
3 https://out.reddit.com/
3 https://www.youtube.com/
2 https://duckduckgo.com/
2 https://www.bing.com/
2 https://news.ycombinator.com/item?id=44512345
1 https://mail.yahoo.com/
1 https://teams.microsoft.com/
1 https://blog.example.com/2026/03/a-long-article-with-a-link?page=2
`

// languages are the Accept-Language headers, one a line after its weight.
const languages = `
40 en-US,en;q=0.9
12 en-GB,en-US;q=0.9,en;q=0.8
10 de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7
8 es-ES,es;q=0.9
8 pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7
6 fr-FR,fr;q=0.9,en;q=0.8
5 ja
4 hi-IN,en-IN;q=0.9
7 -
`

// Visitor is what one request says about who sent it. The slices are shared and
// must not be changed; an empty one stands for a header that is not sent.
type Visitor struct {
	UserAgent []byte
	Referrer  []byte
	Language  []byte
	Addr      netip.Addr
}

// Visitors draws visitors. It never changes and is safe for many goroutines.
type Visitors struct {
	agents, referrers, languages [][]byte // each as often as its weight says
}

// NewVisitors returns the maker of visitors.
func NewVisitors() *Visitors {
	return &Visitors{agents: weighted(agents), referrers: weighted(referrers), languages: weighted(languages)}
}

func weighted(table string) [][]byte {
	var all [][]byte
	for line := range strings.Lines(strings.TrimSpace(table)) {
		weight, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		n := 0
		for _, digit := range weight {
			n = n*10 + int(digit-'0')
		}
		if text == "-" {
			text = ""
		}
		for range n {
			all = append(all, []byte(text))
		}
	}
	return all
}

// Draw returns one visitor. Addresses are spread over all of IPv4, which is more
// than any link sees: worst for whatever is counted per visitor.
func (v *Visitors) Draw(r *rand.Rand) Visitor {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], r.Uint32())
	return Visitor{
		UserAgent: v.agents[r.IntN(len(v.agents))],
		Referrer:  v.referrers[r.IntN(len(v.referrers))],
		Language:  v.languages[r.IntN(len(v.languages))],
		Addr:      netip.AddrFrom4(a),
	}
}
