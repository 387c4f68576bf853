package weburl

import (
	"strings"

	"golang.org/x/net/idna"
)

// Split cuts a URL in normal form into what stands before its host, the host without
// its port, and the rest, so that a reader can be shown which part says where a link
// leads. What has no host comes back in after.
func Split(href string) (before, host, after string) {
	i := strings.Index(href, "://")
	if i < 0 {
		return "", "", href
	}
	start := i + len("://")
	end := len(href)
	if n := strings.IndexAny(href[start:], `/?#\`); n >= 0 {
		end = start + n
	}
	if n := strings.LastIndexByte(href[start:end], '@'); n >= 0 {
		start += n + 1
	}
	if n := strings.LastIndexByte(href[start:end], ':'); n >= 0 && !strings.HasSuffix(href[start:end], "]") {
		end = start + n
	}
	return href[:start], href[start:end], href[end:]
}

// Spelled returns the host of a URL with its A-labels decoded (RFC 3492), whatever comes
// out: to be compared, never to be shown. It takes a tenth of the time of Unicode.
func Spelled(host string) string {
	spelled, _ := idna.Punycode.ToUnicode(host) // a label that is none stays
	return spelled
}

// Unicode returns the letters that a host's A-labels stand for, as browsers may show
// them; "" for a host that has none, or whose letters are not written back to it.
func Unicode(host string) string {
	if !strings.Contains(host, "xn--") {
		return ""
	}
	decoded, err := newProfile().ToUnicode(host)
	if err != nil || decoded == host {
		return ""
	}
	if again, err := toASCII(decoded); err != nil || again != host {
		return ""
	}
	return decoded
}
