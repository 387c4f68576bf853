package lane_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/internal/lane"
	"curt/internal/lane/lanetest"
)

// bodies are wrong only behind a head, which the lane leaves to net/http.
func bodies() map[string]string {
	const post = "POST /api/x HTTP/1.1\r\nHost: links.example\r\nTransfer-Encoding: chunked\r\n\r\n"
	return map[string]string{
		"bare LF behind a chunk's size": post + "5\nhello\r\n0\r\n\r\n",
		"bare LF behind a chunk":        post + "5\r\nhello\n0\r\n\r\n",
		"bare LF in an extension":       post + "5;a\nb\r\nhello\r\n0\r\n\r\n",
		"bare CR in an extension":       post + "5;a\rb\r\nhello\r\n0\r\n\r\n",
		"bare LF behind the last chunk": post + "5\r\nhello\r\n0\n\r\n",
		"bare LF behind a trailer":      post + "5\r\nhello\r\n0\r\nX: y\n\r\n",
		"bare LF as the last line":      post + "5\r\nhello\r\n0\r\n\n",
		"folded trailer":                post + "5\r\nhello\r\n0\r\nX: y\r\n z\r\n\r\n",
		"chunk longer than it says":     post + "4\r\nhello\r\n0\r\n\r\n",
		"size beyond 64 bits":           post + "10000000000000005\r\nhello\r\n0\r\n\r\n",
		"no size":                       post + ";x\r\nhello\r\n0\r\n\r\n",
		"hexadecimal prefix":            post + "0x5\r\nhello\r\n0\r\n\r\n",
	}
}

// stricts are servers whose connections are followed, by how they are reached.
func stricts(t *testing.T) map[string]func() net.Conn {
	certs := certificate(t)
	over := func(dial func() net.Conn) func() net.Conn {
		return func() net.Conn {
			c := tls.Client(dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
			if err := c.HandshakeContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			return c
		}
	}
	dials := map[string]func() net.Conn{}
	for name, r := range map[string]*rig{"lane": start(t, true), "lane, TLS": start(t, true, withTLS(certs))} {
		dials[name] = func() net.Conn { return r.dial(t) }
	}
	dials["lane, TLS"] = over(dials["lane, TLS"])
	for name, wrap := range map[string]func(net.Listener) net.Listener{
		"alone": lane.Strict, "alone, TLS": func(l net.Listener) net.Listener { return lane.StrictTLS(l, certs) },
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: routed(http.NotFoundHandler()), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 12 << 10}
		done := make(chan struct{})
		go func() { _ = s.Serve(wrap(l)); close(done) }()
		t.Cleanup(func() { _ = s.Close(); <-done })
		dials[name] = func() net.Conn {
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = nc.SetDeadline(time.Now().Add(time.Minute))
			t.Cleanup(func() { _ = nc.Close() })
			return nc
		}
	}
	dials["alone, TLS"] = over(dials["alone, TLS"])
	return dials
}

// TestEveryRequestOfAConnectionIsStrict sends what the lane refuses behind requests that
// net/http answers, in one piece with them and on its own, with a request behind it that must
// not be answered.
func TestEveryRequestOfAConnectionIsStrict(t *testing.T) {
	const host, good = "Host: links.example\r\n", "GET /healthz HTTP/1.1\r\nHost: links.example\r\n\r\n"
	firsts := []string{
		"POST /api/x HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello",
		"POST /api/x HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
		"OPTIONS /api/x HTTP/1.1\r\n" + host + "\r\n",
	}
	shapes := lanetest.Refused()
	maps.Copy(shapes, bodies())
	for name, dial := range stricts(t) {
		t.Run(name, func(t *testing.T) {
			for why, shape := range shapes {
				for i, first := range firsts {
					nc := dial()
					r := bufio.NewReader(nc)
					if i == 0 { // with the bytes of the request before
						first += shape + good
					}
					_, err := io.WriteString(nc, first)
					wantStatus(t, why, r, 200)
					if err == nil && i > 0 {
						_, err = io.WriteString(nc, shape+good)
					}
					if err != nil {
						t.Fatal(err)
					}
					wantStatus(t, why, r, 400)
					if rest, err := io.ReadAll(r); len(rest) > 0 || errors.Is(err, tls.RecordHeaderError{}) {
						t.Errorf("%s: behind the 400 came %q (%v)", why, rest, err)
					}
				}
			}
		})
	}
}

func wantStatus(t *testing.T, why string, r *bufio.Reader, want int) {
	t.Helper()
	a, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("%s: no answer: %v", why, err)
	}
	_, err = io.Copy(io.Discard, a.Body)
	_ = a.Body.Close()
	if a.StatusCode != want || err != nil {
		t.Fatalf("%s: %s (%v), want %d", why, a.Status, err, want)
	}
}

// TestSoundRequestsPass: what a client may send is answered by all alike, in whatever pieces.
func TestSoundRequestsPass(t *testing.T) {
	const host = "Host: links.example\r\n"
	requests := []string{
		"POST /api/x HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n",
		"\r\nPUT /api/x HTTP/1.1\r\n" + host + "Content-Length: 11\r\n\r\na\nb\r\n\r\nc\n ", // lines of a body are no lines of ours
		"PATCH /api/x HTTP/1.1\r\n" + host + "Transfer-Encoding: Chunked\r\n\r\nA;x=\"y\"\r\n0123456\r\n\n\r\n00\r\nA: b\r\n\r\n",
		"GET /api/x HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc",
		"GET /healthz HTTP/1.1\r\n" + host + "X: \x80\xff\t\r\n\r\n",
		"POST /api/x HTTP/1.1\r\n" + host + "Connection: close\r\nContent-Length: 2\r\n\r\nok",
	}
	all := strings.Join(requests, "")
	for name, dial := range stricts(t) {
		for seed := range uint64(5) {
			nc := dial()
			go func() {
				for _, piece := range cut(all, seed) {
					if _, err := io.WriteString(nc, piece); err != nil {
						return // the test says what is missing
					}
				}
			}()
			r := bufio.NewReader(nc)
			for range requests {
				wantStatus(t, name, r, 200)
			}
		}
	}
}

// TestAHeadWithoutEndIsRefusedAtNetHTTP: the follower keeps 16 KiB of it at the most.
func TestAHeadWithoutEndIsRefusedAtNetHTTP(t *testing.T) {
	for name, dial := range stricts(t) {
		nc := dial()
		r := bufio.NewReader(nc)
		if _, err := io.WriteString(nc, "POST /api/x HTTP/1.1\r\nHost: links.example\r\nContent-Length: 0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, name, r, 200)
		go func() {
			_, _ = io.WriteString(nc, "GET /healthz HTTP/1.1\r\nHost: links.example\r\n"+strings.Repeat("X: y\r\n", 4000))
		}()
		wantStatus(t, name, r, 431)
	}
}

func TestHTTP2OverTLSIsNotFollowed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	certs := certificate(t)
	s := &http.Server{Handler: routed(http.NotFoundHandler())}
	done := make(chan struct{})
	go func() { _ = s.Serve(lane.StrictTLS(l, certs)); close(done) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	c := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer c.CloseIdleConnections()
	a, err := c.Get("https://" + l.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	if a.ProtoMajor != 2 || a.StatusCode != 200 {
		t.Errorf("%s %s", a.Proto, a.Status)
	}
}

// FuzzFollower: pieces change nothing, and what is sound ends, for net/http's reader, where the
// follower says that it ends.
func FuzzFollower(f *testing.F) {
	for _, all := range []map[string]string{lanetest.Refused(), lanetest.Foreign(), bodies()} {
		for _, shape := range all {
			f.Add([]byte(shape), uint64(1))
			f.Add([]byte("POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok\r\n"+shape), uint64(2))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		n, found, _ := lane.Follow([]string{string(b)})
		for _, pieces := range [][]string{cut(string(b), seed), bytewise(b)} {
			if m, again, _ := lane.Follow(pieces); m != n || again != found {
				t.Fatalf("%q whole: %d %d, in pieces: %d %d", b, n, found, m, again)
			}
		}
		_, _, ends := lane.Follow(bytewise(b)) // which tells where requests end
		sent := bytes.NewReader(b[:n])
		r := bufio.NewReader(sent)
		posted := false
		for _, end := range ends[1:] {
			if posted {
				for c, err := r.Peek(1); err == nil && (c[0] == '\r' || c[0] == '\n'); c, err = r.Peek(1) {
					_, _ = r.Discard(1)
				}
			}
			q, err := http.ReadRequest(r)
			if err != nil {
				return // net/http answers with an error and closes: nothing behind is read
			}
			if _, err := io.Copy(io.Discard, q.Body); err != nil {
				return
			}
			if at := n - sent.Len() - r.Buffered(); at != end {
				t.Fatalf("%q: net/http's request ends at %d, the follower's at %d of %d", b, at, end, n)
			}
			posted = q.Method == http.MethodPost
		}
	})
}

func bytewise(b []byte) []string {
	pieces := make([]string, len(b))
	for i := range b {
		pieces[i] = string(b[i : i+1])
	}
	return pieces
}
