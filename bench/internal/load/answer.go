package load

import (
	"bytes"
	"errors"
	"strconv"
)

// maxAnswer bounds an answer in bytes: everything that is measured is far smaller.
const maxAnswer = 1 << 20

// head is what the first lines of an answer say.
type head struct {
	status int
	total  int  // bytes of the whole answer; 0 = the head is not all there yet
	closes bool // the server ends the connection after it
}

var (
	errHead    = errors.New("malformed head")
	errLength  = errors.New("an answer without Content-Length")
	errTooLong = errors.New("an answer that is too long")
)

// parseHead reads the head at the start of b. It knows what servers under
// measurement send, Content-Length bodies, and refuses the rest by an error.
func parseHead(b []byte) (head, error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		if len(b) > maxAnswer {
			return head{}, errTooLong
		}
		return head{}, nil
	}
	lines := b[:end+2]
	status, err := parseStatus(lines)
	if err != nil {
		return head{}, err
	}
	h, length := head{status: status}, -1
	for lines = lines[bytes.IndexByte(lines, '\n')+1:]; len(lines) > 0; {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || length < 0 {
				return head{}, errHead
			}
		case len(name) == len("Connection") && bytes.EqualFold(name, []byte("Connection")):
			h.closes = bytes.EqualFold(bytes.TrimSpace(value), []byte("close"))
		}
	}
	switch {
	case status == 204 || status == 304:
		length = 0
	case length < 0:
		return head{}, errLength
	case length > maxAnswer:
		return head{}, errTooLong
	}
	h.total = end + 4 + length
	return h, nil
}

// parseStatus reads "HTTP/1.1 201 Created".
func parseStatus(b []byte) (int, error) {
	if len(b) < 14 || string(b[:9]) != "HTTP/1.1 " {
		return 0, errHead
	}
	status := 0
	for _, c := range b[9:12] {
		if c < '0' || c > '9' {
			return 0, errHead
		}
		status = status*10 + int(c-'0')
	}
	if status < 200 {
		return 0, errHead
	}
	return status, nil
}
