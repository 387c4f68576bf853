package redirect_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/cache/cachetest"
	"curt/internal/hosts"
	"curt/internal/hosts/hoststest"
	"curt/internal/link"
	"curt/internal/redirect"
)

// oneConn is a listener that accepts one connection in memory.
type oneConn struct {
	conns chan net.Conn
}

func (l *oneConn) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l *oneConn) Close() error { return nil }
func (*oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// exchange sends the bytes to a real http.Server around h and returns all that it
// answers until it closes the connection.
func exchange(t testing.TB, h http.Handler, request []byte) []byte {
	t.Helper()
	client, server := net.Pipe()
	l := &oneConn{conns: make(chan net.Conn, 1)}
	l.conns <- server
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: nil}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = srv.Serve(l) }()
	go func() { _, _ = client.Write(request) }()
	_ = client.SetDeadline(time.Now().Add(time.Minute))
	answer, err := io.ReadAll(client)
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Fatalf("read the answer of %q: %v after %q", request, err, answer)
	}
	close(l.conns)
	_ = srv.Close()
	_ = client.Close()
	<-ended
	return answer
}

// ours are the header lines that an answer may have, with their only values where
// there are few. nil = any of our making.
func ours() map[string][]string {
	return map[string][]string{
		"Cache-Control":           {"no-store", "private, max-age=0"},
		"Connection":              {"close"},
		"Content-Length":          nil,
		"Content-Security-Policy": nil,
		"Content-Type":            {"text/html; charset=utf-8", "application/problem+json"},
		"Date":                    nil,
		"Location":                nil,
		"Referrer-Policy":         {"no-referrer"},
		"Vary":                    {"Accept"},
		"X-Content-Type-Options":  {"nosniff"},
		"X-Robots-Tag":            {"noindex"},
	}
}

// FuzzHostileRequests sends hostile paths, hosts, queries and headers over the wire
// and reads the answer line by line: nothing of the request may become a header, a
// status or markup.
func FuzzHostileRequests(f *testing.F) {
	f.Add("abc", "links.example", "x=1", "text/html")
	f.Add("fwd", "links.example", "x=%0d%0aSet-Cookie:%20a=b&\"><script>", "text/html")
	f.Add("abc%0d%0aX-Evil:%201", "links.example", "", "*/*")
	f.Add("/evil.example/%2e%2e", "evil.example", "", "text/html")
	f.Add("warned", "links.example", "<script>alert(1)</script>", "text/html,<script>")
	f.Add("<script>alert(1)</script>", "\"><script>alert(1)</script>", "", "text/html")
	f.Add("%", "[::1]:80", "?", "text/html;q=0")
	f.Add("none", "LINKS.example.:443", "\xff\xfe", "\xff")
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest})
	s.Put(key("fwd"), link.Target{Destination: "https://example.com/fwd", ForwardQuery: true})
	s.Put(key("warned"), link.Target{Destination: "https://example.com/<script>alert(1)</script>", Safety: link.Warn})
	h := newHandler(f, redirect.HandlerConfig{Hosts: hoststest.Of(f, hosts.Config{Host: "links.example", Strict: true})}, s, &recorder{})
	f.Fuzz(func(t *testing.T, path, host, query, accept string) {
		for _, part := range []string{path, host, query, accept} {
			// Bytes that end a line would make another request, which is the parser's
			// matter and not ours; an escaped one is in the seeds.
			if strings.ContainsAny(part, "\r\n") {
				return
			}
		}
		answer := exchange(t, h, []byte("GET /"+path+"?"+query+" HTTP/1.1\r\nHost: "+host+
			"\r\nAccept: "+accept+"\r\nConnection: close\r\n\r\n"))
		if bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) || bytes.HasPrefix(answer, []byte("HTTP/1.1 505 ")) ||
			bytes.HasPrefix(answer, []byte("HTTP/1.1 501 ")) {
			return // net/http refused the request before us
		}
		checkAnswer(t, answer)
	})
}

func checkAnswer(t *testing.T, answer []byte) {
	t.Helper()
	head, body, ok := bytes.Cut(answer, []byte("\r\n\r\n"))
	if !ok {
		t.Fatalf("no end of the header in %q", answer)
	}
	lines := strings.Split(string(head), "\r\n")
	status := lines[0]
	if !slices.Contains([]string{"HTTP/1.1 302 Found", "HTTP/1.1 404 Not Found", "HTTP/1.1 200 OK", "HTTP/1.1 403 Forbidden", "HTTP/1.1 414 Request URI Too Long"}, status) {
		t.Fatalf("status line %q", status)
	}
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(bytes.Join(bytes.Split(head, []byte("\r\n"))[1:], []byte("\r\n")), "\r\n\r\n"...)))).ReadMIMEHeader()
	if err != nil {
		t.Fatalf("header of %q: %v", answer, err)
	}
	if len(header) != len(lines)-1 {
		t.Fatalf("%d lines make %d fields: %q", len(lines)-1, len(header), head)
	}
	allowed := ours()
	for name, values := range header {
		few, known := allowed[name]
		if !known || len(values) != 1 || (few != nil && !slices.Contains(few, values[0])) {
			t.Fatalf("header %s: %q in %q", name, values, head)
		}
	}
	if to := header.Get("Location"); to != "" && to != dest && !strings.HasPrefix(to, "https://example.com/fwd") {
		t.Fatalf("Location %q", to)
	}
	if strings.Count(strings.ToLower(string(body)), "<script") > 0 {
		t.Fatalf("a script in %q", body)
	}
}

func TestTheWholeAnswerOnTheWire(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest, NoIndex: true})
	h := newHandler(t, redirect.HandlerConfig{}, s, &recorder{})
	for _, method := range []string{"GET", "HEAD"} {
		got := string(exchange(t, h, []byte(method+" /abc HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")))
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		lines := strings.Split(head, "\r\n")
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Date: ") })
		slices.Sort(lines)
		want := []string{
			"Cache-Control: private, max-age=0", "Connection: close", "Content-Length: 0",
			"HTTP/1.1 302 Found", "Location: " + dest, "X-Robots-Tag: noindex",
		}
		if !slices.Equal(lines, want) || body != "" {
			t.Errorf("%s: %q and body %q, want %q", method, lines, body, want)
		}
	}
	got := string(exchange(t, h, []byte("HEAD /none HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nConnection: close\r\n\r\n")))
	head, body, _ := strings.Cut(got, "\r\n\r\n")
	if body != "" || !strings.Contains(head, "Content-Length: ") || strings.Contains(head, "Content-Length: 0") {
		t.Errorf("HEAD of a page: %q", got)
	}
}
