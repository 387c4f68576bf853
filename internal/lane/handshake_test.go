package lane_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"curt/internal/clicks"
	"curt/internal/lane/lanetest"
)

// nothing records no clicks.
type nothing struct{}

func (nothing) Record(*clicks.Raw) bool { return true }

func certificate(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"links.example"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		NextProtos:   []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12,
	}
}

func dialTLS(t *testing.T, r *rig, protos ...string) *tls.Conn {
	t.Helper()
	c := tls.Client(r.dial(t), &tls.Config{InsecureSkipVerify: true, NextProtos: protos})
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTLS(t *testing.T) {
	seen := make(chan *tls.ConnectionState, 10)
	r := start(t, true, withTLS(certificate(t)), func(s *setup) {
		s.server.Handler = http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { seen <- q.TLS })
	})
	nc := dialTLS(t, r, "http/1.1")
	for range 3 {
		if a := roundTrip(t, nc, lanetest.Browser); a.StatusCode != 302 {
			t.Fatal(a.StatusCode)
		}
	}
	if len(seen) != 0 {
		t.Error("a plain request over TLS left the lane")
	}
	if a := roundTrip(t, nc, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); a.StatusCode != 200 {
		t.Fatal(a.StatusCode)
	}
	if s := <-seen; s == nil || !s.HandshakeComplete || s.NegotiatedProtocol != "http/1.1" {
		t.Errorf("r.TLS of a handed-over connection: %+v", s)
	}
	if n, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes and %v instead of close_notify", n, err)
	}
	for _, code := range []string{"live", "none"} {
		nc = dialTLS(t, r)
		roundTrip(t, nc, "GET /"+code+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if n, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%d bytes and %v instead of close_notify", n, err)
		}
	}
}

func TestHTTP2PassesUnread(t *testing.T) {
	r := start(t, true, withTLS(certificate(t)))
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for range 100 {
		a, err := client.Get("https://" + r.addr + "/live")
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if a.StatusCode != 302 || a.ProtoMajor != 2 || a.Header.Get("Location") != dest {
			t.Fatalf("%s %s", a.Proto, a.Status)
		}
	}
	eventually(t, "one connection is at net/http", func() bool {
		s := r.lane.Stats()
		return s.HandedOff == 1 && s.AtHTTP == 1
	})
	client.CloseIdleConnections()
	eventually(t, "the connection is counted out", func() bool { return r.lane.Stats().AtHTTP == 0 })
}

func TestHandshakesThatFail(t *testing.T) {
	r := start(t, true, still, withTLS(certificate(t)))
	if got := r.exchange(t, live); !strings.HasPrefix(got, "HTTP/1.0 400 ") || !strings.Contains(got, "HTTPS server") {
		t.Errorf("HTTP on a TLS port: %q", got)
	}
	_ = r.exchange(t, "\x16\x03\x01")
	silent := r.dial(t)
	eventually(t, "accepted", func() bool { return r.lane.Stats().Open == 1 })
	roundTrip(t, dialTLS(t, r), live) // nobody waits for the silent one
	r.lane.At(11 * time.Second)
	ended(t, silent)
}

// v2 is a binary header of 203.0.113.7:8080 to 127.0.0.1:80.
const v2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x07\x7f\x00\x00\x01\x1f\x90\x00\x50"

// TestProxyNamesTheClient holds lane and net/http alone to the same client.
func TestProxyNamesTheClient(t *testing.T) {
	proxy := func(s *setup) { s.lane.ProxyProtocol = true }
	post := "POST /temp HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	for name, on := range map[string]bool{"lane": true, "net/http": false} {
		t.Run(name, func(t *testing.T) {
			r := start(t, on, proxy, trusting("127.0.0.0/8"))
			for _, header := range []string{"PROXY TCP4 203.0.113.7 127.0.0.1 8080 80\r\n", v2} {
				for seed := range uint64(3) {
					if got := statuses(answers(t, r.exchange(t, lanetest.Cut(header+live+post, seed)...))); got != "302 307" {
						t.Errorf("%q: %s", header, got)
					}
				}
			}
			for _, header := range []string{"", "PROXY TCP4 x\r\n", "PROXY"} {
				if got := r.exchange(t, header+live); got != "" && statuses(answers(t, got)) != "400" {
					t.Errorf("%q: %q", header, got)
				}
			}
			all := r.rec.take()
			for _, c := range all {
				if c.Addr != netip.MustParseAddr("203.0.113.7") {
					t.Errorf("client %s", c.Addr)
				}
			}
			if len(all) != 12 {
				t.Errorf("%d clicks", len(all))
			}
			stranger := start(t, on, proxy, trusting("10.0.0.0/8"))
			if got := statuses(answers(t, stranger.exchange(t, live))); got != "302" {
				t.Errorf("a stranger without a header: %s", got)
			}
			if got := statuses(answers(t, stranger.exchange(t, "PROXY TCP4 203.0.113.7 127.0.0.1 8080 80\r\n"+live))); got != "400" {
				t.Errorf("a stranger with a header: %s", got)
			}
		})
	}
}

func TestForwardedForIsReadAsNetHTTPDoes(t *testing.T) {
	on, off := start(t, true, trusting("127.0.0.0/8")), start(t, false, trusting("127.0.0.0/8"))
	for _, lines := range []string{
		"X-Forwarded-For: 203.0.113.9\r\n", "X-Forwarded-For: 1.1.1.1, 203.0.113.9\r\n", "X-Forwarded-For: 1.1.1.1\r\nx-forwarded-for: 203.0.113.9, 127.0.0.7\r\n",
		"X-Forwarded-For: junk\r\n", "X-Forwarded-For:\r\n", "X-Forwarded-For: [2001:db8::1]:80\r\n", "",
	} {
		compare(t, on, off, "GET /live HTTP/1.1\r\nHost: x\r\n"+lines+"\r\n", 0)
	}
}
