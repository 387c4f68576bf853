package redirect

import (
	"strings"

	"curt/internal/link"
)

// safe reports whether a stored URL may be a Location: absolute, http or https, of
// printable ASCII, not too long. The write path stores nothing else; this is the
// second lock on the same door, for rows that came another way.
func safe(url string) bool {
	if len(url) > link.MaxDestination {
		return false
	}
	rest, ok := strings.CutPrefix(url, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(url, "http://")
	}
	if !ok || rest == "" || rest[0] == '/' {
		return false
	}
	for i := range len(rest) {
		if rest[i] < 0x21 || rest[i] > 0x7e {
			return false
		}
	}
	return true
}

// withQuery returns the URL with the pairs of a raw query added to its own, before
// its fragment. "qr=1" and passes are ours and stay here; bytes that may not stand in a query
// are percent-encoded as browsers do (WHATWG URL, special-query percent-encode set).
func withQuery(url, query string) string {
	base, fragment, _ := strings.Cut(url, "#")
	var b strings.Builder
	b.Grow(len(url) + 1 + len(query))
	b.WriteString(base)
	sep := byte('?')
	if strings.Contains(base, "?") {
		sep = '&'
		if last := base[len(base)-1]; last == '?' || last == '&' {
			sep = 0
		}
	}
	for pair := range strings.SplitSeq(query, "&") {
		if stays(pair) {
			continue
		}
		if sep != 0 {
			b.WriteByte(sep)
		}
		sep = '&'
		encode(&b, pair)
	}
	if fragment != "" {
		b.WriteByte('#')
		b.WriteString(fragment)
	}
	return b.String()
}

// qrPair is the trigger that a printed code carries.
const qrPair = "qr=1"

func encode(b *strings.Builder, s string) {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x21, c > 0x7e, c == '"', c == '#', c == '<', c == '>', c == '\'':
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&0xf])
		default:
			b.WriteByte(c)
		}
	}
}
