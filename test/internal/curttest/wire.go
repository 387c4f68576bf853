package curttest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// exchangeBound is how long one request may take: far more than any should, so
// that only a server that hangs meets it.
const exchangeBound = 3 * time.Minute

// maxHead bounds the head of an answer in bytes.
const maxHead = 64 << 10

// Conn is one HTTP/1.1 connection that sends exactly the bytes it is given. One
// goroutine uses it at a time.
type Conn struct {
	conn net.Conn
	r    *bufio.Reader
	addr string
}

// Dial connects to host:port.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	d := net.Dialer{Timeout: exchangeBound}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &Conn{conn: c, r: bufio.NewReader(c), addr: addr}, nil
}

// Close ends the connection.
func (c *Conn) Close() { _ = c.conn.Close() } // nothing can be done about it and nothing depends on it

// Field is one header line of an answer, as it came.
type Field struct{ Name, Value string }

// Answer is what came back.
type Answer struct {
	Status int
	Fields []Field
	Body   []byte
	Raw    string // the head's bytes, without the empty line
}

// Get returns the value of the header that is there exactly once, and whether it
// is; names compare without case.
func (a Answer) Get(name string) (value string, ok bool) {
	n := 0
	for _, f := range a.Fields {
		if strings.EqualFold(f.Name, name) {
			value, n = f.Value, n+1
		}
	}
	return value, n == 1
}

// Has reports whether the header is there at all.
func (a Answer) Has(name string) bool {
	for _, f := range a.Fields {
		if strings.EqualFold(f.Name, name) {
			return true
		}
	}
	return false
}

// Closes reports whether the server announced that the connection ends here.
func (a Answer) Closes() bool {
	v, _ := a.Get("Connection")
	return strings.EqualFold(v, "close")
}

// Do sends one request with a Host and, when there is a body, its Content-Length,
// and reads the answer. Header lines are given whole, as "Name: value".
func (c *Conn) Do(method, target string, lines []string, body string) (Answer, error) {
	var b strings.Builder
	b.Grow(256 + len(body))
	b.WriteString(method + " " + target + " HTTP/1.1\r\nHost: " + c.addr + "\r\n")
	for _, l := range lines {
		b.WriteString(l + "\r\n")
	}
	if body != "" {
		b.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	b.WriteString("\r\n" + body)
	if err := c.Send(b.String()); err != nil {
		return Answer{}, err
	}
	return c.Read(method)
}

// Send writes the bytes.
func (c *Conn) Send(raw string) error {
	if err := c.conn.SetDeadline(time.Now().Add(exchangeBound)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	if _, err := io.WriteString(c.conn, raw); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	return nil
}

// Read reads one answer to a request of the given method.
func (c *Conn) Read(method string) (Answer, error) {
	a, err := c.readHead()
	if err != nil {
		return Answer{}, fmt.Errorf("read answer: %w", err)
	}
	if method == "HEAD" || a.Status < 200 || a.Status == 204 || a.Status == 304 {
		return a, nil
	}
	if a.Body, err = c.readBody(a); err != nil {
		return Answer{}, fmt.Errorf("read body: %w", err)
	}
	return a, nil
}

func (c *Conn) readHead() (Answer, error) {
	var raw strings.Builder
	var a Answer
	for first := true; ; first = false {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return Answer{}, err
		}
		text, ok := strings.CutSuffix(line, "\r\n")
		if !ok || raw.Len()+len(line) > maxHead {
			return Answer{}, fmt.Errorf("header line without CRLF, or a head over %d bytes: %q", maxHead, line)
		}
		switch {
		case first:
			if a.Status, err = statusOf(text); err != nil {
				return Answer{}, err
			}
		case text == "":
			a.Raw = raw.String()
			return a, nil
		default:
			name, value, found := strings.Cut(text, ":")
			if !found || name == "" || strings.ContainsAny(name, " \t") {
				return Answer{}, fmt.Errorf("malformed header line %q", text)
			}
			a.Fields = append(a.Fields, Field{name, strings.Trim(value, " \t")})
		}
		raw.WriteString(line)
	}
}

func statusOf(line string) (int, error) {
	rest, ok := strings.CutPrefix(line, "HTTP/1.1 ")
	if !ok || len(rest) < 3 {
		return 0, fmt.Errorf("malformed status line %q", line)
	}
	n, err := strconv.Atoi(rest[:3])
	if err != nil {
		return 0, fmt.Errorf("malformed status line %q", line)
	}
	return n, nil
}

// readBody reads by Content-Length, by chunks, or to the end of the connection.
func (c *Conn) readBody(a Answer) ([]byte, error) {
	if v, ok := a.Get("Content-Length"); ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 64<<20 {
			return nil, fmt.Errorf("content length %q", v)
		}
		body := make([]byte, n)
		_, err = io.ReadFull(c.r, body)
		return body, err
	}
	if v, _ := a.Get("Transfer-Encoding"); v == "chunked" {
		return c.readChunks()
	}
	if !a.Closes() {
		return nil, errors.New("a body without length on a connection that stays open")
	}
	return io.ReadAll(c.r)
}

func (c *Conn) readChunks() ([]byte, error) {
	var body []byte
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseUint(strings.TrimRight(line, "\r\n"), 16, 31)
		if err != nil {
			return nil, fmt.Errorf("chunk size %q", line)
		}
		chunk := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, chunk); err != nil {
			return nil, err
		}
		if string(chunk[n:]) != "\r\n" {
			return nil, errors.New("a chunk that does not end in CRLF")
		}
		if n == 0 {
			return body, nil
		}
		body = append(body, chunk[:n]...)
	}
}
