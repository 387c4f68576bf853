package weburl

import (
	"bytes"
	"strings"
)

// The bytes that each part percent-encodes besides controls, space and what lies
// above 0x7E (WHATWG, section 1.3). "%" is in none: escapes stay as they are.
const (
	encodeInPath     = "\"#<>?^`{}"
	encodeInQuery    = "\"#<>'"
	encodeInFragment = "\"<>`"
)

// appendRest appends what follows the authority: path, query, fragment.
func appendRest(b []byte, s string) []byte {
	s, fragment, hasFragment := strings.Cut(s, "#")
	path, query, hasQuery := strings.Cut(s, "?")
	b = appendPath(b, path)
	if hasQuery {
		b = appendEncoded(append(b, '?'), query, encodeInQuery)
	}
	if hasFragment {
		b = appendEncoded(append(b, '#'), fragment, encodeInFragment)
	}
	return b
}

// appendPath appends the path without dot segments; backslashes are slashes.
func appendPath(b []byte, path string) []byte {
	root := len(b)
	if path != "" && (path[0] == '/' || path[0] == '\\') {
		path = path[1:]
	}
	for {
		segment, last := path, true
		if i := strings.IndexAny(path, `/\`); i >= 0 {
			segment, path, last = path[:i], path[i+1:], false
		}
		switch dots(segment) {
		case 0:
			b = appendEncoded(append(b, '/'), segment, encodeInPath)
		case 2:
			if i := bytes.LastIndexByte(b[root:], '/'); i >= 0 {
				b = b[:root+i]
			}
			fallthrough
		case 1:
			if last {
				b = append(b, '/')
			}
		}
		if last {
			return b
		}
	}
}

// dots returns 1 for ".", 2 for "..", however the dots are escaped, and else 0.
func dots(segment string) int {
	n := 0
	for segment != "" {
		switch {
		case segment[0] == '.':
			segment = segment[1:]
		case len(segment) >= 3 && strings.EqualFold(segment[:3], "%2e"):
			segment = segment[3:]
		default:
			return 0
		}
		if n++; n > 2 {
			return 0
		}
	}
	return n
}

func appendEncoded(b []byte, s, set string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || strings.IndexByte(set, c) >= 0 {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}
