// Package headers reads the host of a referrer, the language, and the UTM fields of a request,
// and writes the least from which it reads the same again.
package headers

import (
	"bytes"
	"net/url"
	"strings"

	"curt/internal/clicks"
)

// ReferrerHost returns the host of a Referer header, lower case, without "www."
// and port, in buf; empty for none and for what is no web address. "www." says
// nothing about where a visitor came from.
func ReferrerHost(referrer, buf []byte) []byte {
	scheme, rest, ok := bytes.Cut(referrer, []byte("://"))
	if !ok || !isWeb(scheme) {
		return nil
	}
	if i := bytes.IndexAny(rest, "/?#\\"); i >= 0 {
		rest = rest[:i]
	}
	if i := bytes.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	if i := bytes.LastIndexByte(rest, ':'); i >= 0 && (len(rest) == 0 || rest[len(rest)-1] != ']') {
		rest = rest[:i]
	}
	rest = bytes.TrimSuffix(rest, []byte("."))
	if len(rest) > 253 {
		return nil
	}
	host := buf[:0]
	for _, c := range rest {
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '.', c == '-', c == '_', c == '[', c == ']', c == ':':
		default:
			return nil // a browser sends A-labels
		}
		host = append(host, c)
	}
	return bytes.TrimPrefix(host, []byte("www."))
}

// isWeb also takes what Android apps send: android-app://com.example.
func isWeb(scheme []byte) bool {
	switch string(scheme) {
	case "http", "https", "android-app", "HTTP", "HTTPS":
		return true
	}
	return false
}

// PrimaryLanguage returns the first language of an Accept-Language header without
// its region: two or three letters, five bits each; 0 = none.
func PrimaryLanguage(header []byte) uint16 {
	var packed uint16
	for i, c := range header {
		c |= 0x20
		if c < 'a' || c > 'z' {
			break
		}
		if i == 3 {
			return 0
		}
		packed = packed<<5 | uint16(c-'a'+1)
	}
	if packed < 1<<5 {
		return 0 // one letter, or none
	}
	return packed
}

// LanguageName returns the name of a packed language.
func LanguageName(packed uint16) string { return string(AppendLanguage(nil, packed)) }

// AppendLanguage appends what PrimaryLanguage reads as the same.
func AppendLanguage(b []byte, packed uint16) []byte {
	for shift := 10; shift >= 0; shift -= 5 {
		if letter := byte(packed >> shift & 31); letter != 0 {
			b = append(b, letter+'a'-1)
		}
	}
	return b
}

// maxUTM bounds a UTM field; longer ones are cut.
const maxUTM = 128

// UTM holds the five fields in the order of the dimensions from UTMSource on.
type UTM [clicks.UTMContent - clicks.UTMSource + 1]string

// ParseUTM reads the UTM fields of a query. The first of repeated fields counts, as
// in the analytics programs that invented them.
func ParseUTM(query []byte) (fields UTM, any bool) {
	if !bytes.Contains(query, []byte("utm_")) {
		return UTM{}, false
	}
	for pair := range bytes.SplitSeq(query, []byte("&")) {
		name, value, _ := bytes.Cut(pair, []byte("="))
		if !bytes.HasPrefix(name, []byte("utm_")) {
			continue
		}
		d, ok := clicks.ParseDimension(string(name))
		if !ok || d < clicks.UTMSource || d > clicks.UTMContent || fields[d-clicks.UTMSource] != "" {
			continue
		}
		text := cleanUTM(string(value))
		fields[d-clicks.UTMSource] = text
		any = any || text != ""
	}
	return fields, any
}

// cleanUTM decodes a value and drops what no campaign has but a report must not
// meet: see Plain, and parentheses, which mark our own values. What it returns it leaves as it
// is.
func cleanUTM(value string) string {
	text := strings.Map(func(r rune) rune {
		if r == '(' || r == ')' {
			return -1
		}
		return r
	}, clicks.Plain(unescaped(value)))
	if text = strings.TrimSpace(text); len(text) > maxUTM {
		text = strings.TrimSpace(strings.ToValidUTF8(text[:maxUTM], ""))
	}
	return text
}

// unescaped decodes a value of a query, or leaves it as it is.
func unescaped(value string) string {
	if text, err := url.QueryUnescape(value); err == nil {
		return text
	}
	return value
}

// AppendUTM appends the query of UTM fields, which ParseUTM reads as them.
func AppendUTM(b []byte, fields *UTM) []byte {
	begin := len(b)
	for i, text := range fields {
		if text == "" {
			continue
		}
		if len(b) > begin {
			b = append(b, '&')
		}
		b = append(append(b, (clicks.UTMSource+clicks.Dimension(i)).String()...), '=')
		b = append(b, url.QueryEscape(text)...)
	}
	return b
}

// AppendReferrer appends scheme and host of a referrer, from which ReferrerHost reads its host
// again, and its path if that is wanted. Of what has no host that statistics could show it
// appends nothing.
func AppendReferrer(b, referrer []byte, path bool) []byte {
	var buf [256]byte
	host := ReferrerHost(referrer, buf[:])
	if len(host) == 0 {
		return b
	}
	scheme, rest, _ := bytes.Cut(referrer, []byte("://"))
	if scheme[0]|0x20 == 'a' {
		b = append(b, "android-app://"...)
	} else {
		b = append(b, "https://"...)
	}
	b = appendHost(b, host)
	if !path {
		return b
	}
	if end := bytes.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end]
	}
	if slash := bytes.IndexByte(rest, '/'); slash >= 0 {
		b = append(b, rest[slash:]...)
	}
	return b
}

// appendHost appends a host that ReferrerHost returned so that it returns it again: it leaves
// out one "www.", one dot at the end and one port, of which a header may have several.
func appendHost(b, host []byte) []byte {
	if bytes.HasPrefix(host, []byte("www.")) {
		b = append(b, "www."...)
	}
	b = append(b, host...)
	if bytes.HasSuffix(host, []byte(".")) {
		b = append(b, '.')
	}
	if bytes.IndexByte(host, ':') >= 0 && !bytes.HasSuffix(host, []byte("]")) {
		b = append(b, ':')
	}
	return b
}

// AppendPlain appends a header without what clicks.Plain takes away.
func AppendPlain(b, text []byte) []byte {
	if isPlainASCII(text) {
		return append(b, text...)
	}
	return append(b, clicks.Plain(string(text))...)
}

// AppendPlainQuery appends a query as it was sent but for UTM fields that have what Plain takes
// away, whether it is escaped or not.
func AppendPlainQuery(b, query []byte) []byte {
	if !bytes.Contains(query, []byte("utm_")) || isPlainASCII(query) && !bytes.Contains(query, []byte("%")) {
		return append(b, query...)
	}
	begin := len(b)
	for pair := range bytes.SplitSeq(query, []byte("&")) {
		if len(b) > begin {
			b = append(b, '&')
		}
		name, value, _ := bytes.Cut(pair, []byte("="))
		sent := unescaped(string(value))
		if plain := clicks.Plain(sent); plain != sent && bytes.HasPrefix(name, []byte("utm_")) {
			b = append(append(b, clicks.Plain(string(name))...), '=')
			b = append(b, url.QueryEscape(plain)...)
			continue
		}
		b = append(b, pair...)
	}
	return b
}

// isPlainASCII reports whether Plain takes nothing away, without a look at other characters.
func isPlainASCII(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
