// Package head is the grammar of the request heads that internal/lane answers itself. It reads a
// head of HTTP/1.x by RFC 9112 without an allocation, and says who answers it: the lane, net/http,
// or a 400. The package comment of internal/lane lists the shapes.
package head

import (
	"bytes"
	"slices"
	"unsafe"

	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/redirect"
)

// MaxSize bounds a head, its empty line included.
const MaxSize = 16 << 10

// Verdict says who answers a head.
type Verdict uint8

// The verdicts.
const (
	Incomplete Verdict = iota // no empty line yet, and no error so far
	Plain                     // a plain request: the lane answers
	Other                     // valid, or another protocol: net/http answers
	Bad                       // malformed: 400
)

// Head is a request head. Its slices point into the bytes that were parsed.
type Head struct {
	Size   int  // bytes, the empty line included
	IsHead bool // HEAD, not GET
	Close  bool // Connection: close
	Flags  clicks.Flags

	Code, Query, Host         []byte
	Agent, Referrer, Language []byte   // the first line of each, as sent
	Accept, Forwarded         [][]byte // all lines; the memory of the slices is reused

	HasRequestLine  bool // the request line is complete and of HTTP/1.x
	TransferCodings int  // lines of Transfer-Encoding

	hasAgent, hasReferrer, hasLanguage bool
	hosts, lengths                     int  // lines of Host and Content-Length
	minor                              byte // of HTTP/1.x, as its digit
	other                              bool // a part that only net/http handles was read
}

// Reset empties the head and keeps the memory of its lists.
func (h *Head) Reset() {
	accept, forwarded := h.Accept[:0], h.Forwarded[:0]
	*h = Head{Accept: accept, Forwarded: forwarded}
}

// Parse reads a head from the beginning of b. It does not allocate once its lists
// have grown. pages are paths that are not codes.
func (h *Head) Parse(b []byte, pages []string) Verdict {
	h.Reset()
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return Incomplete
	}
	line, ok := CutCR(b[:end])
	if !ok || HasControl(line) {
		return Bad
	}
	if !h.RequestLine(line, pages) {
		return Other // not HTTP/1.x: net/http has the answer
	}
	h.HasRequestLine = true
	at := end + 1
	for {
		end = bytes.IndexByte(b[at:], '\n')
		if end < 0 {
			return Incomplete
		}
		line, ok = CutCR(b[at : at+end])
		if !ok {
			return Bad
		}
		at += end + 1
		if len(line) == 0 {
			h.Size = at
			return h.Framing()
		}
		if !h.Field(line) {
			return Bad
		}
	}
}

// CutCR removes the CR from a line that was cut at its LF.
func CutCR(line []byte) ([]byte, bool) {
	n := len(line)
	if n == 0 || line[n-1] != '\r' {
		return nil, false
	}
	return line[:n-1], true
}

// RequestLine reads a request line and reports whether it ends as one of HTTP/1.x does.
func (h *Head) RequestLine(line []byte, pages []string) bool {
	const version = " HTTP/1."
	n := len(line) - len(version) - 1
	if n < 0 || string(line[n:n+len(version)]) != version {
		return false
	}
	if h.minor = line[len(line)-1]; h.minor < '0' || h.minor > '9' {
		return false
	}
	h.other = h.minor != '1' || !h.target(line[:n], pages)
	return true
}

// target reports whether method and target are those of a plain request.
func (h *Head) target(line []byte, pages []string) bool {
	switch {
	case len(line) > 5 && string(line[:5]) == "GET /":
		line = line[5:]
	case len(line) > 6 && string(line[:6]) == "HEAD /":
		h.IsHead, h.Flags, line = true, clicks.Head, line[6:]
	default:
		return false
	}
	h.Code = line
	if i := bytes.IndexByte(line, '?'); i >= 0 {
		h.Code, h.Query = line[:i], line[i+1:]
		if !visible(h.Query) {
			return false
		}
		if redirect.ViaQR(h.Query) {
			h.Flags |= clicks.ViaQR
		}
	}
	return link.ValidCode(h.Code) && !slices.Contains(pages, View(h.Code))
}

// SplitField splits a field line, or a trailer; ok is false when it is malformed.
func SplitField(line []byte) (name, value []byte, ok bool) {
	colon := tokenEnd(line)
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return nil, nil, false // a folded line begins with a space, which is not a token
	}
	value = Trim(line[colon+1:])
	return line[:colon], value, !HasControlExceptTab(value)
}

// Field reads one field line and reports whether it is well-formed.
func (h *Head) Field(line []byte) bool {
	name, value, ok := SplitField(line)
	if !ok {
		return false
	}
	switch len(name) {
	case 4:
		if EqualName(name, "host") {
			h.Host = value
			h.hosts++
			return len(value) > 0 && hostBytes(value)
		}
	case 5:
		if EqualName(name, "x-moz") {
			h.purpose(value)
		}
	case 6:
		switch {
		case EqualName(name, "accept"):
			h.Accept = append(h.Accept, value)
		case EqualName(name, "expect"):
			h.other = true
		}
	case 7:
		switch {
		case EqualName(name, "referer"):
			if !h.hasReferrer {
				h.Referrer, h.hasReferrer = value, true
			}
		case EqualName(name, "purpose"):
			h.purpose(value)
		case EqualName(name, "upgrade"):
			h.other = true
		}
	case 10:
		switch {
		case EqualName(name, "user-agent"):
			if !h.hasAgent {
				h.Agent, h.hasAgent = value, true
			}
		case EqualName(name, "connection"):
			h.connection(value)
		}
	case 11:
		if EqualName(name, "sec-purpose") {
			h.purpose(value)
		}
	default:
		return h.longField(name, value)
	}
	return true
}

// longField is Field for the names that frame a message, and others as long.
func (h *Head) longField(name, value []byte) bool {
	switch len(name) {
	case 14:
		if EqualName(name, "content-length") {
			h.other = true
			h.lengths++
			return isNumber(value)
		}
	case 15:
		switch {
		case EqualName(name, "accept-language"):
			if !h.hasLanguage {
				h.Language, h.hasLanguage = value, true
			}
		case EqualName(name, "x-forwarded-for"):
			h.Forwarded = append(h.Forwarded, value)
		}
	case 17:
		if EqualName(name, "transfer-encoding") {
			h.other = true
			h.TransferCodings++
		}
	}
	return true
}

func (h *Head) purpose(value []byte) {
	if redirect.AnnouncesPrefetch(value) {
		h.Flags |= clicks.Prefetch
	}
}

// connection reads a list of options; "close" and "keep-alive" are those of a plain request.
func (h *Head) connection(value []byte) {
	for more := true; more; {
		option := value
		i := bytes.IndexByte(value, ',')
		if more = i >= 0; more {
			option, value = value[:i], value[i+1:]
		}
		switch option = Trim(option); {
		case len(option) == 0, EqualName(option, "keep-alive"):
		case EqualName(option, "close"):
			h.Close = true
		default:
			h.other = true
		}
	}
}

// Framing returns the verdict on a whole head, by the fields that must agree with each other.
func (h *Head) Framing() Verdict {
	switch {
	case h.hosts > 1, h.hosts == 0 && h.minor != '0', h.lengths > 1,
		h.lengths > 0 && h.TransferCodings > 0, h.TransferCodings > 0 && h.minor == '0':
		return Bad
	case h.other:
		return Other
	}
	return Plain
}

// Ends reports whether an empty line ends in b after the first scanned bytes.
func Ends(b []byte, scanned int) bool {
	for i := max(scanned, 1); i < len(b); i++ {
		if b[i] == '\n' && (b[i-1] == '\n' || i > 1 && b[i-1] == '\r' && b[i-2] == '\n') {
			return true
		}
	}
	return false
}

// EndsOnce reports whether b ends with the end of a head and holds no other end of
// one. Bytes that begin with a line's end may have completed an earlier head.
func EndsOnce(b []byte) bool {
	if len(b) == 0 || b[0] == '\r' || b[0] == '\n' {
		return false
	}
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			return false
		}
		b = b[i+1:]
		switch {
		case bytes.HasPrefix(b, []byte("\n")):
			return len(b) == 1
		case bytes.HasPrefix(b, []byte("\r\n")):
			return len(b) == 2
		}
	}
}

// View returns the bytes as a string without a copy, for a callee that keeps
// nothing of it: the buffer behind the bytes is reused.
func View(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // see above; a copy would be an allocation for every request behind a proxy
}
