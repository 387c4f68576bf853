package lanetest

import (
	"bytes"
	"math/rand/v2"
	"strings"

	"curt/internal/clicks"
	"curt/internal/lane/head"
)

// Browser is a request as browsers send it.
const Browser = "GET /abcdefg HTTP/1.1\r\nHost: links.example\r\nConnection: keep-alive\r\n" +
	"sec-ch-ua: \"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\"\r\nsec-ch-ua-mobile: ?0\r\nsec-ch-ua-platform: \"Linux\"\r\n" +
	"Upgrade-Insecure-Requests: 1\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n" +
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\nSec-Fetch-Site: cross-site\r\n" +
	"Sec-Fetch-Mode: navigate\r\nReferer: https://social.example/\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: de-DE,de;q=0.9\r\n\r\n"

// Head is head.Head for comparison.
type Head struct {
	Size                                                            int
	IsHead, Close                                                   bool
	Flags                                                           clicks.Flags
	Code, Query, Host, Agent, Referrer, Language, Accept, Forwarded string
}

// ParseHead parses with the page "healthz".
func ParseHead(b []byte) (Head, string) {
	var h head.Head
	v := h.Parse(b, []string{"healthz"})
	join := func(lines [][]byte) string { return string(bytes.Join(lines, []byte("|"))) }
	return Head{
		Size: h.Size, IsHead: h.IsHead, Close: h.Close, Flags: h.Flags, Code: string(h.Code), Query: string(h.Query),
		Host: string(h.Host), Agent: string(h.Agent), Referrer: string(h.Referrer), Language: string(h.Language),
		Accept: join(h.Accept), Forwarded: join(h.Forwarded),
	}, [...]string{"incomplete", "plain", "other", "bad"}[v]
}

// Cut cuts s into up to eight pieces; seed 0 gives one, seed 1 one of each byte.
func Cut(s string, seed uint64) []string {
	switch seed {
	case 0:
		return []string{s}
	case 1:
		return strings.Split(s, "")
	}
	r := rand.New(rand.NewPCG(seed, 1))
	var pieces []string
	for len(s) > 0 && len(pieces) < 7 {
		n := 1 + r.IntN(len(s))
		pieces, s = append(pieces, s[:n]), s[n:]
	}
	return append(pieces, s)
}
