package blocklist

import (
	"bytes"
	"path"
	"strings"

	"curt/internal/weburl"
)

// expression is what a URL and a line that is a URL are compared by: host, port, path
// and query, in one spelling. Scheme and fragment are no part of it, and neither is
// port 80 or 443.
//
//   - Path and query are freed from escapes, until there are none, and then escaped
//     where a byte is a control, a space, "#", "%", "\" or none of ASCII, or "?" in a
//     path; runs of slashes in a path are one, and dots in it are resolved. That is what
//     Safe Browsing does, but for "\" and "?".
//   - A slash at the end of the path is dropped: most servers lead from one form to the
//     other.
//
// A line means every URL that it begins, up to a border: the end of the host and port,
// of a segment of the path, of the path, or of a parameter of the query.
// "https://evil.example/a?x=1" means /a?x=1&y=2 too, and neither /a nor /ab?x=1;
// "https://evil.example/a" means /a/b and /a?x=1 and not /ab.
type expression struct {
	host  int // bytes of host and port
	query int // where the "?" is; the length of the text = nowhere
	n     int // bytes in room
	room  [usual]byte
	long  []byte // instead of room; else nil
}

// usual is how long expressions are nearly always: those cost no allocation.
const usual = 512

func (x *expression) text() []byte {
	if x.long != nil {
		return x.long
	}
	return x.room[:x.n]
}

// of makes the expression of u with one of the names of its host.
func (x *expression) of(u weburl.URL, host string) {
	var room [usual]byte
	text := room[:0]
	if strings.IndexByte(host, ':') >= 0 {
		text = append(append(append(text, '['), host...), ']')
	} else {
		text = append(text, host...)
	}
	if port := portOf(u); port != "" {
		text = append(append(text, ':'), port...)
	}
	x.host = len(text)
	where, query := pathAndQuery(u)
	text = appendPath(text, where)
	for len(text) > x.host && text[len(text)-1] == '/' {
		text = text[:len(text)-1]
	}
	x.query = len(text)
	if query != "" {
		text = escape(appendUnescaped(append(text, '?'), query), x.query+1, 0)
	}
	if x.n, x.long = copy(x.room[:], text), nil; x.n < len(text) {
		x.long = bytes.Clone(text)
	}
}

// border returns the border behind another; the first is x.host. It is false when there
// is none.
func (x *expression) border(behind int) (int, bool) {
	text := x.text()
	for i := behind + 1; i < len(text); i++ {
		switch c := text[i]; {
		case i == x.query, c == '/' && i < x.query, c == '&' && i > x.query:
			return i, true
		}
	}
	return len(text), behind < len(text)
}

// ends returns how many borders follow the first.
func (x *expression) ends() int {
	n := 0
	for at, ok := x.border(x.host); ok; at, ok = x.border(at) {
		n++
	}
	return n
}

// portOf returns the port of a URL; "" for those of http and https.
func portOf(u weburl.URL) string {
	_, _, after := weburl.Split(u.Href())
	port, _, _ := strings.Cut(strings.TrimPrefix(after, ":"), "/")
	if len(port) == len(after) || port == "80" || port == "443" {
		return ""
	}
	return port
}

// pathAndQuery returns the path of a URL, and its query without the "?".
func pathAndQuery(u weburl.URL) (where, query string) {
	_, _, after := weburl.Split(u.Href())
	after, _, _ = strings.Cut(after, "#")
	after, query, _ = strings.Cut(after, "?")
	return after[strings.IndexByte(after, '/'):], query
}

// appendPath adds a path in the one spelling that it has. A final slash stays.
func appendPath(dst []byte, where string) []byte {
	from := len(dst)
	dst = appendUnescaped(dst, where)
	if bytes.Contains(dst[from:], []byte("//")) || bytes.Contains(dst[from:], []byte("/.")) {
		raw := string(dst[from:])
		dst = append(dst[:from], path.Clean(raw)...)
		if last := raw[strings.LastIndexByte(raw, '/')+1:]; (last == "" || last == "." || last == "..") && dst[len(dst)-1] != '/' {
			dst = append(dst, '/')
		}
	}
	return escape(dst, from, '?')
}

// appendUnescaped adds a text without its escapes, and without those that come to light
// then, as "%2541".
func appendUnescaped(dst []byte, text string) []byte {
	from := len(dst)
	for i := range len(text) {
		dst = append(dst, text[i])
		for n := len(dst); n-from >= 3 && dst[n-3] == '%'; n = len(dst) {
			hi, lo := weburl.Unhex(dst[n-2]), weburl.Unhex(dst[n-1])
			if hi > 15 || lo > 15 {
				break
			}
			dst = append(dst[:n-3], hi<<4|lo)
		}
	}
	return dst
}

// escape escapes what stands behind from and is no plain character, or is also.
func escape(text []byte, from int, also byte) []byte {
	first := 0
	for first < len(text)-from && !isOdd(text[from+first], also) {
		first++
	}
	if from+first == len(text) {
		return text
	}
	const digits = "0123456789ABCDEF"
	raw := string(text[from+first:])
	text = text[:from+first]
	for i := range len(raw) {
		if c := raw[i]; isOdd(c, also) {
			text = append(text, '%', digits[c>>4], digits[c&15])
		} else {
			text = append(text, c)
		}
	}
	return text
}

func isOdd(c, also byte) bool {
	return c <= ' ' || c >= 0x7f || c == '#' || c == '%' || c == '\\' || c == also
}
