package strict

import (
	"bytes"
	"strconv"

	"curt/internal/lane/head"
)

// finding is the result of following bytes.
type finding uint8

const (
	valid     finding = iota
	malformed         // a line, or the framing of a whole head
	oversized         // a head that does not end within head.MaxSize
)

// position is where in a request a follower is.
type position uint8

const (
	beforeRequest position = iota // at the request line
	inFields                      // in the rest of a head
	inBody                        // as long as Content-Length says
	inChunkSize                   // at the line with the size of a chunk
	inChunk                       // in the data of a chunk
	afterChunk                    // at the line end after a chunk
	inTrailers                    // after the last chunk
	refused                       // net/http refuses the request by its own rules and closes
)

// follower reads requests of HTTP/1.x one after the other, in pieces of any size, and keeps no more
// of them than the current line. The zero value is at the beginning of a connection. It never ends
// a request where net/http does not: what net/http reads in more than one way is malformed here,
// and what it does not accept ends its connection.
type follower struct {
	at      position
	head    head.Head // only its counters: what its slices point to is gone
	line    []byte    // the beginning of the current line, from earlier reads
	size    int       // of the head, or of the trailers, so far
	rest    uint64    // bytes of the body or the chunk that are to come
	length  uint64    // the Content-Length of the head
	chunked bool
	posted  bool // the last request was a POST: net/http accepts empty lines after it
}

// follow reads on, and returns how many bytes are valid. Where n < len(b), it is the end of the
// malformed line, and follow is not called again.
func (f *follower) follow(b []byte) (n int, found finding) {
	for n < len(b) && f.at != refused {
		if f.at == inBody || f.at == inChunk {
			some := min(f.rest, uint64(len(b)-n))
			n += int(some)
			if f.rest -= some; f.rest == 0 {
				f.dataEnd()
			}
			continue
		}
		end := lineEnd(b[n:], head.MaxSize+1-f.size)
		if end < 0 {
			f.size += len(b) - n
			if f.size > head.MaxSize {
				return n, f.overflow()
			}
			f.line = append(f.line, b[n:]...)
			return len(b), valid
		}
		line := b[n : n+end]
		if f.size += end + 1; f.size > head.MaxSize {
			return n, f.overflow()
		}
		if len(f.line) > 0 {
			f.line = append(f.line, line...)
			line = f.line
		}
		if !f.readLine(line) {
			return n + end, malformed
		}
		f.line = f.line[:0]
		n += end + 1
	}
	return len(b), valid
}

// lineEnd returns the index of the first LF, -1 = there is none within limit bytes.
func lineEnd(b []byte, limit int) int {
	return bytes.IndexByte(b[:min(len(b), max(limit, 0))], '\n')
}

// overflow tells a head that is too long from lines of a body that are.
func (f *follower) overflow() finding {
	if f.at == beforeRequest || f.at == inFields {
		return oversized
	}
	return malformed
}

// dataEnd continues after the bytes of a body or a chunk.
func (f *follower) dataEnd() {
	if f.at == inBody {
		f.nextRequest()
	} else {
		f.at, f.size = afterChunk, 0
	}
}

// nextRequest continues after a request.
func (f *follower) nextRequest() { f.at, f.size, f.length, f.chunked = beforeRequest, 0, 0, false }

// readLine reads a whole line without its LF, and reports whether it is valid.
func (f *follower) readLine(line []byte) bool {
	line, ok := head.CutCR(line)
	if !ok {
		return false
	}
	switch f.at {
	case beforeRequest:
		return f.requestLine(line)
	case inFields:
		if len(line) == 0 {
			return f.headEnd()
		}
		return f.field(line)
	case inChunkSize:
		return f.chunkSize(line)
	case afterChunk:
		f.at, f.size = inChunkSize, 0
		return len(line) == 0
	case inTrailers:
		if len(line) == 0 {
			f.nextRequest()
			return true
		}
		_, _, ok = head.SplitField(line)
		return ok
	case inBody, inChunk, refused:
	}
	return true
}

func (f *follower) requestLine(line []byte) bool {
	if len(line) == 0 && f.posted {
		f.size = 0
		return true
	}
	if head.HasControl(line) {
		return false
	}
	f.head.Reset()
	if !f.head.RequestLine(line, nil) {
		f.at = refused
		return true
	}
	f.at, f.posted = inFields, len(line) > 5 && string(line[:5]) == "POST "
	return true
}

func (f *follower) field(line []byte) bool {
	if !f.head.Field(line) {
		return false
	}
	name, value, _ := head.SplitField(line)
	switch len(name) {
	case 14:
		if head.EqualName(name, "content-length") {
			var err error
			f.length, err = strconv.ParseUint(string(value), 10, 63)
			return err == nil
		}
	case 17:
		if head.EqualName(name, "transfer-encoding") {
			f.chunked = head.EqualName(value, "chunked") // net/http answers all others with 501 and closes
		}
	}
	return true
}

// headEnd continues after a head.
func (f *follower) headEnd() bool {
	h := &f.head
	if h.Framing() == head.Bad {
		return false
	}
	f.size = 0
	switch {
	case h.TransferCodings > 1, h.TransferCodings == 1 && !f.chunked:
		f.at = refused
	case f.chunked:
		f.at = inChunkSize
	case f.length > 0:
		f.at, f.rest = inBody, f.length
	default:
		f.nextRequest()
	}
	return true
}

// chunkSize reads hexadecimal digits, and skips extensions and spaces after them.
func (f *follower) chunkSize(line []byte) bool {
	digits := 0
	var size uint64
	for digits < len(line) && isHex(line[digits]) {
		size = size<<4 | uint64(unhex(line[digits]))
		digits++
	}
	rest := head.Trim(line[digits:])
	if digits == 0 || digits > 15 || head.HasControlExceptTab(rest) || len(rest) > 0 && rest[0] != ';' {
		return false
	}
	f.size = 0
	if f.at, f.rest = inChunk, size; size == 0 {
		f.at = inTrailers
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
