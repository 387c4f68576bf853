package lane_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestWhoIsIdleAtNetHTTPMakesRoom: the oldest idle connection goes, wherever it is.
func TestWhoIsIdleAtNetHTTPMakesRoom(t *testing.T) {
	const limit = 8
	r := start(t, true, still, func(s *setup) { s.lane.MaxConns = limit })
	var all []net.Conn
	for i := range limit {
		nc := r.dial(t)
		all = append(all, nc)
		if i == 1 { // older than all others at net/http, younger than the first
			roundTrip(t, nc, live)
			eventually(t, "it is idle in the lane", func() bool { return r.lane.States()["idle"] == 1 })
		} else {
			roundTrip(t, nc, page)
			want := i + 1
			if i > 0 {
				want--
			}
			eventually(t, "it is idle at net/http", func() bool { return r.lane.HTTPStates()["idle"] == want })
		}
		r.lane.At(time.Duration(i+1) * time.Second)
	}
	for n, oldest := range all {
		roundTrip(t, r.dial(t), page)
		ended(t, oldest)
		eventually(t, "it is counted out", func() bool { s := r.lane.Stats(); return s.Open+s.AtHTTP <= limit })
		eventually(t, "who came is idle", func() bool { return r.lane.States()["idle"]+r.lane.HTTPStates()["idle"] == limit })
		if s := r.lane.Stats(); s.Evicted != uint64(n+1) || s.Refused != 0 {
			t.Fatalf("%+v after %d", s, n+1)
		}
		r.lane.At(time.Duration(limit+n+1) * time.Second)
	}
}

// body is a request whose body does not come.
const body = "POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe"

// TestWhoIsWorkedForStays: a request that the server has whole is never closed, and only when
// all are such, who comes is refused. One whose body does not come makes room, and so
// does a head under way, but after those that are idle.
func TestWhoIsWorkedForStays(t *testing.T) {
	release := make(chan struct{})
	r := start(t, true, still, func(s *setup) {
		s.lane.MaxConns = 3
		s.server.Handler = http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/api/work" {
				<-release
			}
		})
	})
	uploads, head, idle := r.dial(t), r.dial(t), r.dial(t)
	if _, err := io.WriteString(uploads, body); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its body is waited for", func() bool { return r.lane.Unfinished() == 1 })
	r.lane.At(time.Second)
	roundTrip(t, head, page)
	roundTrip(t, idle, page)
	eventually(t, "two are idle", func() bool { return r.lane.HTTPStates()["idle"] == 2 })
	if _, err := io.WriteString(head, "GET"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a head is under way", func() bool { return r.lane.HTTPStates()["reading"] == 1 })
	var works []net.Conn
	for n, leaves := range []net.Conn{idle, uploads, head} {
		nc := r.dial(t)
		works = append(works, nc)
		if _, err := io.WriteString(nc, "GET /api/work HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, leaves) // ends, or the test's time does
		eventually(t, "it is worked for", func() bool {
			return r.lane.HTTPStates()["http"]-r.lane.Unfinished() == n+1 && r.lane.Stats().AtHTTP <= 3
		})
	}
	ended(t, r.dial(t)) // nobody can go
	close(release)
	for _, nc := range works {
		a, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _ = a.Body.Close(); a.StatusCode != http.StatusOK {
			t.Error(a.Status)
		}
	}
	if s := r.lane.Stats(); s.Evicted != 3 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
}

// TestHTTP2MakesRoom: with a request under way it is busy, without one idle.
func TestHTTP2MakesRoom(t *testing.T) {
	r := start(t, true, still, withTLS(certificate(t)), func(s *setup) { s.lane.MaxConns = 1 })
	old := dialTLS(t, r, "h2")
	if _, err := io.WriteString(old, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is idle", func() bool { return r.lane.HTTPStates()["idle"] == 1 })
	_ = dialTLS(t, r, "http/1.1")
	_, _ = io.Copy(io.Discard, old) // ends, or the test's time does
	eventually(t, "it is gone", func() bool { s := r.lane.Stats(); return s.AtHTTP == 0 && s.Evicted == 1 })
}
