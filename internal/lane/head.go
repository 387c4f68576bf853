package lane

import (
	"bytes"
	"slices"

	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/redirect"
)

// maxHead bounds a head, its last line included.
const maxHead = 16 << 10

// verdict is what the lane makes of the bytes of a head.
type verdict uint8

const (
	incomplete verdict = iota // no empty line yet, and nothing wrong so far
	express                   // the lane's own shape
	foreign                   // for net/http
	bad                       // 400
)

// head is a request head as parse found it. Its slices point into the bytes parsed.
type head struct {
	size    int  // bytes, the empty line included
	isHead  bool // HEAD, not GET
	closing bool // Connection: close
	flags   clicks.Flags

	code, query, host         []byte
	agent, referrer, language []byte // the first line of each, as sent
	hasAgent, hasRef, hasLang bool
	accept, forwarded         [][]byte // all lines; the slices' memory is reused
	hosts, lengths, transfers int
	minor                     byte // of HTTP/1.x, as its digit
	lined                     bool // the request line was read
	foreign                   bool // something that the lane leaves to net/http was seen
}

// reset keeps the memory of the lists.
func (h *head) reset() {
	accept, forwarded := h.accept[:0], h.forwarded[:0]
	*h = head{accept: accept, forwarded: forwarded}
}

// parse reads a head from the beginning of b. It does not allocate once its lists
// have grown. pages are paths that are no codes.
func (h *head) parse(b []byte, pages []string) verdict {
	h.reset()
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return incomplete
	}
	line, ok := cutCR(b[:end])
	if !ok || hasControl(line) {
		return bad
	}
	if !h.requestLine(line, pages) {
		return foreign // no HTTP/1.x: net/http finds the words for it
	}
	h.lined = true
	at := end + 1
	for {
		end = bytes.IndexByte(b[at:], '\n')
		if end < 0 {
			return incomplete
		}
		line, ok = cutCR(b[at : at+end])
		if !ok {
			return bad
		}
		at += end + 1
		if len(line) == 0 {
			h.size = at
			return h.framing()
		}
		if !h.field(line) {
			return bad
		}
	}
}

// cutCR takes the CR off a line that was cut at its LF.
func cutCR(line []byte) ([]byte, bool) {
	n := len(line)
	if n == 0 || line[n-1] != '\r' {
		return nil, false
	}
	return line[:n-1], true
}

// requestLine reports whether the line ends as one of HTTP/1.x does.
func (h *head) requestLine(line []byte, pages []string) bool {
	const version = " HTTP/1."
	n := len(line) - len(version) - 1
	if n < 0 || string(line[n:n+len(version)]) != version {
		return false
	}
	if h.minor = line[len(line)-1]; h.minor < '0' || h.minor > '9' {
		return false
	}
	h.foreign = h.minor != '1' || !h.target(line[:n], pages)
	return true
}

// target reports whether method and target are the lane's.
func (h *head) target(line []byte, pages []string) bool {
	switch {
	case len(line) > 5 && string(line[:5]) == "GET /":
		line = line[5:]
	case len(line) > 6 && string(line[:6]) == "HEAD /":
		h.isHead, h.flags, line = true, clicks.Head, line[6:]
	default:
		return false
	}
	h.code = line
	if i := bytes.IndexByte(line, '?'); i >= 0 {
		h.code, h.query = line[:i], line[i+1:]
		if !visible(h.query) {
			return false
		}
		if redirect.ViaQR(h.query) {
			h.flags |= clicks.ViaQR
		}
	}
	return link.ValidCode(h.code) && !slices.Contains(pages, view(h.code))
}

// field reads one field line and reports whether it is well-formed.
func (h *head) field(line []byte) bool {
	colon := tokenEnd(line)
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return false // a folded line begins with a space, which is no token
	}
	value := trim(line[colon+1:])
	if hasControlButTab(value) {
		return false
	}
	name := line[:colon]
	switch len(name) {
	case 4:
		if isName(name, "host") {
			h.host = value
			h.hosts++
			return len(value) > 0 && hostBytes(value)
		}
	case 5:
		if isName(name, "x-moz") {
			h.purpose(value)
		}
	case 6:
		switch {
		case isName(name, "accept"):
			h.accept = append(h.accept, value)
		case isName(name, "expect"):
			h.foreign = true
		}
	case 7:
		switch {
		case isName(name, "referer"):
			if !h.hasRef {
				h.referrer, h.hasRef = value, true
			}
		case isName(name, "purpose"):
			h.purpose(value)
		case isName(name, "upgrade"):
			h.foreign = true
		}
	case 10:
		switch {
		case isName(name, "user-agent"):
			if !h.hasAgent {
				h.agent, h.hasAgent = value, true
			}
		case isName(name, "connection"):
			h.connection(value)
		}
	case 11:
		if isName(name, "sec-purpose") {
			h.purpose(value)
		}
	default:
		return h.longField(name, value)
	}
	return true
}

// longField is field for the names that say how a message is framed, and others as
// long.
func (h *head) longField(name, value []byte) bool {
	switch len(name) {
	case 14:
		if isName(name, "content-length") {
			h.foreign = true
			h.lengths++
			return isNumber(value)
		}
	case 15:
		switch {
		case isName(name, "accept-language"):
			if !h.hasLang {
				h.language, h.hasLang = value, true
			}
		case isName(name, "x-forwarded-for"):
			h.forwarded = append(h.forwarded, value)
		}
	case 17:
		if isName(name, "transfer-encoding") {
			h.foreign = true
			h.transfers++
		}
	}
	return true
}

func (h *head) purpose(value []byte) {
	if redirect.AnnouncesPrefetch(value) {
		h.flags |= clicks.Prefetch
	}
}

// connection reads a list of options; "close" and "keep-alive" are the lane's.
func (h *head) connection(value []byte) {
	for more := true; more; {
		option := value
		i := bytes.IndexByte(value, ',')
		if more = i >= 0; more {
			option, value = value[:i], value[i+1:]
		}
		switch option = trim(option); {
		case len(option) == 0, isName(option, "keep-alive"):
		case isName(option, "close"):
			h.closing = true
		default:
			h.foreign = true
		}
	}
}

// framing judges what only the whole head shows.
func (h *head) framing() verdict {
	switch {
	case h.hosts > 1, h.hosts == 0 && h.minor != '0', h.lengths > 1,
		h.lengths > 0 && h.transfers > 0, h.transfers > 0 && h.minor == '0':
		return bad
	case h.foreign:
		return foreign
	}
	return express
}
