package lane

import (
	"bytes"
	"io"
	"net"
	"strconv"
)

// What the lane refuses (see the package comment) is refused in every request of a connection
// of HTTP/1.x, who ever reads it. net/http is given the bytes of a connection as they come,
// and a follower reads along: it knows where heads and bodies end. Where a line ends that is
// wrong, net/http gets poison instead of the line's end, which it answers with 400, and then
// no more. Nothing is held back, so that time-outs, deadlines and who counts as idle are as
// without it.

// poison ends no line that net/http takes: not a request line, no field, no size of a chunk.
const poison = "\x00\r\n\r\n"

// strict follows what is read of a connection. Owned by whoever reads.
type strict struct {
	follower
	over  bool   // net/http gets what follows and nothing of the client's
	left  string // of poison
	large bool   // the head is: it goes on until net/http says so
}

// pass judges what was read and returns how much of it net/http gets.
func (s *strict) pass(b []byte) int {
	n, found := s.follow(b)
	switch found {
	case wrong:
		s.over, s.left = true, poison
	case endless:
		s.over, s.large = true, true
	case sound:
	}
	return n
}

// instead is read where the client's bytes are over.
func (s *strict) instead(p []byte) (int, error) {
	if s.large {
		for i := range p {
			p[i] = 'x'
		}
		return len(p), nil
	}
	n := copy(p, s.left)
	if s.left = s.left[n:]; n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Strict returns a listener whose connections of HTTP/1.x are refused what the lane refuses.
// It is for listeners without TLS, see StrictTLS; the lane's own, which is strict by itself, is
// returned as it is.
func Strict(l net.Listener) net.Listener {
	if _, own := l.(*handover); own {
		return l
	}
	return strictListener{l}
}

type strictListener struct{ net.Listener }

// Accept returns the next connection.
func (l strictListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err // as it is: net/http asks it whether to go on
	}
	return &strictConn{Conn: nc}, nil
}

type strictConn struct {
	net.Conn
	strict strict
}

// Read returns what comes, as long as it is sound.
func (c *strictConn) Read(p []byte) (int, error) {
	for !c.strict.over {
		n, err := c.Conn.Read(p)
		passed := c.strict.pass(p[:n])
		switch {
		case !c.strict.over:
			return passed, err
		case passed > 0:
			return passed, nil
		}
	}
	return c.strict.instead(p)
}

// CloseWrite ends our half; net/http uses it so that a last answer is not lost.
func (c *strictConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NetConn returns the connection below, as that of tls.Conn does.
func (c *strictConn) NetConn() net.Conn { return c.Conn }

// finding is what a follower makes of bytes.
type finding uint8

const (
	sound   finding = iota
	wrong           // a line, or what a whole head says of its framing
	endless         // a head that does not end within maxHead
)

// part is where in a request a follower is.
type part uint8

const (
	before   part = iota // the request line
	fields               // the rest of a head
	body                 // as long as Content-Length says
	chunk                // the line with its size
	data                 // of a chunk
	dataEnd              // the end of the line behind it
	trailers             // behind the last chunk
	refused              // net/http refuses the request by itself and closes
)

// follower reads requests of HTTP/1.x one behind the other, in whatever pieces they come, and
// keeps no more of them than the line under way. The zero value is at the beginning of a
// connection. It never says that a request ends where net/http does not: what net/http would
// take more than one way is wrong here, and what it does not take at all it closes on.
type follower struct {
	at      part
	head    head   // its counters; what its slices point to is gone
	line    []byte // what came of the line under way in earlier reads
	size    int    // of the head, or of the trailers, so far
	rest    uint64 // bytes of the body or the chunk that are to come
	length  uint64 // that the head says
	chunked bool
	posted  bool // the last request was a POST: net/http takes ends of lines behind it
}

// follow reads on, and returns how many bytes are sound. Where n < len(b), it is the end of the
// line that is not, and follow is not called again.
func (f *follower) follow(b []byte) (n int, found finding) {
	for n < len(b) && f.at != refused {
		if f.at == body || f.at == data {
			some := min(f.rest, uint64(len(b)-n))
			n += int(some)
			if f.rest -= some; f.rest == 0 {
				f.skipped()
			}
			continue
		}
		end := lineEnd(b[n:], maxHead+1-f.size)
		if end < 0 {
			f.size += len(b) - n
			if f.size > maxHead {
				return n, f.overflow()
			}
			f.line = append(f.line, b[n:]...)
			return len(b), sound
		}
		line := b[n : n+end]
		if f.size += end + 1; f.size > maxHead {
			return n, f.overflow()
		}
		if len(f.line) > 0 {
			f.line = append(f.line, line...)
			line = f.line
		}
		if !f.lineIs(line) {
			return n + end, wrong
		}
		f.line = f.line[:0]
		n += end + 1
	}
	return len(b), sound
}

// lineEnd returns the index of the first LF, -1 = there is none up to most.
func lineEnd(b []byte, most int) int {
	return bytes.IndexByte(b[:min(len(b), max(most, 0))], '\n')
}

// overflow says what a head, or lines of a body, are that are too long.
func (f *follower) overflow() finding {
	if f.at == before || f.at == fields {
		return endless
	}
	return wrong
}

// skipped goes on behind the bytes of a body or a chunk.
func (f *follower) skipped() {
	if f.at == body {
		f.begin()
	} else {
		f.at, f.size = dataEnd, 0
	}
}

// begin goes on behind a request.
func (f *follower) begin() { f.at, f.size, f.length, f.chunked = before, 0, 0, false }

// lineIs takes a whole line without its LF, and reports whether it is sound.
func (f *follower) lineIs(line []byte) bool {
	line, ok := cutCR(line)
	if !ok {
		return false
	}
	switch f.at {
	case before:
		return f.requestLine(line)
	case fields:
		if len(line) == 0 {
			return f.headEnd()
		}
		return f.field(line)
	case chunk:
		return f.chunkSize(line)
	case dataEnd:
		f.at, f.size = chunk, 0
		return len(line) == 0
	case trailers:
		if len(line) == 0 {
			f.begin()
			return true
		}
		colon := tokenEnd(line)
		return colon > 0 && colon < len(line) && line[colon] == ':' && !hasControlButTab(line[colon:])
	case body, data, refused:
	}
	return true
}

func (f *follower) requestLine(line []byte) bool {
	if len(line) == 0 && f.posted {
		f.size = 0
		return true
	}
	if hasControl(line) {
		return false
	}
	f.head.reset()
	if !f.head.requestLine(line, nil) {
		f.at = refused
		return true
	}
	f.at, f.posted = fields, len(line) > 5 && string(line[:5]) == "POST "
	return true
}

func (f *follower) field(line []byte) bool {
	if !f.head.field(line) {
		return false
	}
	name, value := line[:tokenEnd(line)], line[tokenEnd(line)+1:]
	switch len(name) {
	case 14:
		if isName(name, "content-length") {
			var err error
			f.length, err = strconv.ParseUint(string(trim(value)), 10, 63)
			return err == nil
		}
	case 17:
		if isName(name, "transfer-encoding") {
			f.chunked = isName(trim(value), "chunked") // net/http answers all others with 501 and closes
		}
	}
	return true
}

// headEnd goes on behind a head.
func (f *follower) headEnd() bool {
	h := &f.head
	switch h.framing() {
	case bad:
		return false
	case incomplete, express, foreign:
	}
	f.size = 0
	switch {
	case h.transfers > 1, h.transfers == 1 && !f.chunked:
		f.at = refused
	case f.chunked:
		f.at = chunk
	case f.length > 0:
		f.at, f.rest = body, f.length
	default:
		f.begin()
	}
	return true
}

// chunkSize reads hexadecimal digits, and passes over extensions and spaces behind them.
func (f *follower) chunkSize(line []byte) bool {
	digits := 0
	var size uint64
	for digits < len(line) && isHex(line[digits]) {
		size = size<<4 | uint64(unhex(line[digits]))
		digits++
	}
	rest := trim(line[digits:])
	if digits == 0 || digits > 15 || hasControlButTab(rest) || len(rest) > 0 && rest[0] != ';' {
		return false
	}
	f.size = 0
	if f.at, f.rest = data, size; size == 0 {
		f.at = trailers
	}
	return true
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
