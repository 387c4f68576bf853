package lane_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/internal/lane/lanetest"
	"curt/internal/lane/strict"
)

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
		"alone": strict.Listener, "alone, TLS": func(l net.Listener) net.Listener { return strict.TLSListener(l, certs) },
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
			_ = nc.SetDeadline(time.Now().Add(3 * time.Minute))
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
	maps.Copy(shapes, lanetest.Bodies())
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
				for _, piece := range lanetest.Cut(all, seed) {
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
	go func() { _ = s.Serve(strict.TLSListener(l, certs)); close(done) }()
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
