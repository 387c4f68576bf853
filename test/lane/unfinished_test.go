package lane_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// The addresses of those who attack and of those who visit: two networks.
const attackersFrom, visitorsFrom = "127.0.0.2", "127.0.9.1"

// unfinished is a request that never is finished: hold returns when the server ends it.
type unfinished struct {
	name  string
	never bool // it never gets so far that the server works on it
	hold  func(nc net.Conn, address string)
}

// sends holds a connection with bytes that ask for more.
func sends(name, text string) unfinished {
	return unfinished{name: name, hold: func(nc net.Conn, address string) {
		if _, err := io.WriteString(nc, strings.ReplaceAll(text, "ADDR", address)); err == nil {
			_, _ = io.Copy(io.Discard, nc)
		}
	}}
}

func never(k unfinished) unfinished { k.never = true; return k }

// neverReads asks for answers for as long as the server takes requests, and reads none.
func neverReads() unfinished {
	return unfinished{name: "answers that nobody reads", hold: func(nc net.Conn, address string) {
		for {
			if _, err := io.WriteString(nc, "GET /api/docs HTTP/1.1\r\nHost: "+address+"\r\n\r\n"); err != nil {
				return
			}
		}
	}}
}

// http2Body sends a request of HTTP/2 whose body does not come.
func http2Body() unfinished {
	return unfinished{name: "body over h2", hold: func(nc net.Conn, address string) {
		one := &http.Transport{ForceAttemptHTTP2: true, DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return nc, nil }}
		defer one.CloseIdleConnections()
		body, end := io.Pipe()
		defer func() { _ = end.Close() }()
		a, err := one.RoundTrip(mustRequest("https://"+address+"/report", body))
		if err == nil {
			_ = a.Body.Close()
		}
	}}
}

func mustRequest(url string, body io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, body)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

const form = "POST /report HTTP/1.1\r\nHost: ADDR\r\nContent-Type: application/x-www-form-urlencoded\r\n"

func bodies() []unfinished {
	return []unfinished{
		sends("body with a length", form+"Content-Length: 60000\r\n\r\nlink="),
		sends("GET with a body", "GET /okok HTTP/1.1\r\nHost: ADDR\r\nContent-Length: 100\r\n\r\n"),
		sends("chunks", form+"Transfer-Encoding: chunked\r\n\r\n5\r\nlink="),
		sends("Expect", form+"Expect: 100-continue\r\nContent-Length: 60000\r\n\r\n"),
		neverReads(),
	}
}

// TestUnfinishedRequestsLockNobodyOut: one address holds every connection with what it never finishes, and
// comes again when it is closed. Others are answered, on new connections and on one that
// they keep, with and without the lane.
func TestUnfinishedRequestsLockNobodyOut(t *testing.T) {
	for _, mode := range []string{"on", "off"} {
		t.Run("CURT_LANE="+mode, func(t *testing.T) {
			t.Run("plain", func(t *testing.T) {
				s := curttest.Start(t, curttest.Options{Env: []string{"CURT_MAX_CONNECTIONS=24", "CURT_LANE=" + mode}})
				all(t, &site{server: s, address: s.Addr}, bodies()...)
			})
			t.Run("PROXY", func(t *testing.T) {
				s := curttest.Start(t, curttest.Options{Env: []string{
					"CURT_MAX_CONNECTIONS=24", "CURT_LANE=" + mode, "CURT_PROXY_PROTOCOL=true", "CURT_TRUSTED_PROXIES=" + attackersFrom + "/32",
				}})
				all(t, &site{server: s, address: s.Addr}, never(sends("PROXY header", "PROXY TCP4 192.0.2.1")))
			})
			t.Run("TLS", func(t *testing.T) {
				cert, key := curttest.Certificate(t)
				s := curttest.Start(t, curttest.Options{Env: []string{
					"CURT_MAX_CONNECTIONS=24", "CURT_LANE=" + mode, "CURT_TLS_CERT=" + cert, "CURT_TLS_KEY=" + key,
				}})
				all(t, &site{server: s, address: s.Addr}, never(sends("handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")))
				all(t, &site{server: s, address: s.Addr, tls: "http/1.1"}, bodies()[0], neverReads())
				all(t, &site{server: s, address: s.Addr, tls: "h2"}, http2Body())
			})
		})
	}
	t.Run("CURT_API_LISTEN", func(t *testing.T) {
		api := curttest.FreeAddr(t)
		s := curttest.Start(t, curttest.Options{Env: []string{"CURT_MAX_CONNECTIONS=24", "CURT_API_LISTEN=" + api}})
		all(t, &site{server: s, address: api, api: true}, bodies()...)
	})
}

// site is a listener of a server.
type site struct {
	server  *curttest.Server
	address string
	tls     string // what attackers speak over it; "" = they do not get there
	secure  bool   // the listener speaks TLS
	api     bool
}

func all(t *testing.T, s *site, kinds ...unfinished) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s.secure = s.tls != "" || k.name == "handshake"
			s.attacked(t, k)
		})
	}
}

// attacked has visitors come while attackers hold what they can.
func (s *site) attacked(t *testing.T, k unfinished) {
	const attackers, visitors = 32, 10
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	for range attackers {
		done.Go(func() { s.attack(ctx, k) })
	}
	defer done.Wait()
	defer cancel()
	s.awaitFull(t)
	stays := s.visitor(t)
	for n := range visitors {
		nc, err := s.comes(t, k)
		if err != nil {
			t.Fatalf("visit %d of who comes: %v", n+1, err)
		}
		_ = nc.Close()
		err = visit(stays)
		if err != nil && !k.never {
			// Where the server works on most of what attackers sent, who is idle goes first.
			stays, err = s.comes(t, k)
		}
		if err != nil {
			t.Fatalf("visit %d of who is there: %v", n+1, err)
		}
	}
	s.awaitFull(t)
}

// comes visits on a new connection. Where the server may be working on the first of what
// attackers sent nobody can go, for a moment, and the visitor comes again. A server that
// lets attackers stay refuses many thousands. The pauses give it as much time on a machine that
// refuses fast.
func (s *site) comes(t *testing.T, k unfinished) (net.Conn, error) {
	t.Helper()
	for tries := 0; ; tries++ {
		nc := s.visitor(t)
		err := visit(nc)
		if err == nil || k.never || tries == 5000 {
			return nc, err
		}
		_ = nc.Close()
		time.Sleep(200 * time.Microsecond)
	}
}

// attack holds a connection, again and again.
func (s *site) attack(ctx context.Context, k unfinished) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attackersFrom)}}
	for ctx.Err() == nil {
		nc, err := d.DialContext(ctx, "tcp", s.address)
		if err != nil {
			continue
		}
		_ = nc.(*net.TCPConn).SetReadBuffer(4096) // an answer that nobody reads fills it soon
		stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
		held := nc
		if s.tls != "" {
			secure := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{s.tls}})
			if err = secure.HandshakeContext(ctx); err == nil {
				held = secure
			}
		}
		if err == nil {
			k.hold(held, s.address)
		}
		stop()
		_ = nc.Close()
		select { // so that they leave some processor to others
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// awaitFull waits until attackers hold all connections that there may be.
func (s *site) awaitFull(t *testing.T) {
	t.Helper()
	names, most := []string{"curt_lane_connections", "curt_lane_foreign_connections"}, 24.0
	if s.api {
		names, most = []string{"curt_api_connections"}, 16
	}
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var n float64
		for _, name := range names {
			n += metric(t, s.server, name)
		}
		if n >= most-1 { // one may just have been closed
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v connections are held", n)
		}
	}
}

func (s *site) visitor(t *testing.T) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(visitorsFrom)}}
	nc, err := d.DialContext(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(2 * time.Minute))
	if !s.secure {
		return nc
	}
	return tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
}

// visit asks for something that is answered without a key, and keeps the connection.
func visit(nc net.Conn) error {
	if _, err := io.WriteString(nc, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /unknown HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		return err
	}
	r := bufio.NewReader(nc)
	for _, want := range []int{http.StatusOK, http.StatusNotFound} {
		a, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, a.Body)
		if err = errors.Join(err, a.Body.Close()); err != nil {
			return err
		}
		if a.StatusCode != want {
			return fmt.Errorf("%s, want %d", a.Status, want)
		}
	}
	return nil
}
