package clicks

import (
	"bytes"
	"net/url"
	"strings"
)

// referrerHost returns the host of a Referer header, lower case, without "www."
// and port, in buf; empty for none and for what is no web address. "www." says
// nothing about where a visitor came from.
func referrerHost(referrer, buf []byte) []byte {
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

// primaryLanguage returns the first language of an Accept-Language header without
// its region: two or three letters, five bits each; 0 = none.
func primaryLanguage(header []byte) uint16 {
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

func languageName(packed uint16) string { return string(appendLanguage(nil, packed)) }

func appendLanguage(b []byte, packed uint16) []byte {
	for shift := 10; shift >= 0; shift -= 5 {
		if letter := byte(packed >> shift & 31); letter != 0 {
			b = append(b, letter+'a'-1)
		}
	}
	return b
}

// maxUTM bounds a UTM field; longer ones are cut.
const maxUTM = 128

// utm holds the five fields in the order of the dimensions from UTMSource on.
type utm [UTMContent - UTMSource + 1]string

// readUTM reads the UTM fields of a query. The first of repeated fields counts, as
// in the analytics programs that invented them.
func readUTM(query []byte) (fields utm, any bool) {
	if !bytes.Contains(query, []byte("utm_")) {
		return utm{}, false
	}
	for pair := range bytes.SplitSeq(query, []byte("&")) {
		name, value, _ := bytes.Cut(pair, []byte("="))
		if !bytes.HasPrefix(name, []byte("utm_")) {
			continue
		}
		d, ok := ParseDimension(string(name))
		if !ok || d < UTMSource || d > UTMContent || fields[d-UTMSource] != "" {
			continue
		}
		text := cleanUTM(string(value))
		fields[d-UTMSource] = text
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
	}, Plain(unescaped(value)))
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

// appendUTM appends the query of UTM fields, which readUTM reads as them.
func appendUTM(b []byte, fields *utm) []byte {
	begin := len(b)
	for i, text := range fields {
		if text == "" {
			continue
		}
		if len(b) > begin {
			b = append(b, '&')
		}
		b = append(append(b, (UTMSource+Dimension(i)).String()...), '=')
		b = append(b, url.QueryEscape(text)...)
	}
	return b
}
