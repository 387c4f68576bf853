package lane_test

import (
	"io"
	"net"
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
			eventually(t, "it is idle in the lane", func() bool { return r.lane.Phases()["idle"] == 1 })
		} else {
			roundTrip(t, nc, page)
			want := i + 1
			if i > 0 {
				want--
			}
			eventually(t, "it is idle at net/http", func() bool { return r.lane.Away()["idle"] == want })
		}
		r.lane.At(time.Duration(i+1) * time.Second)
	}
	for n, oldest := range all {
		roundTrip(t, r.dial(t), page)
		ended(t, oldest)
		eventually(t, "it is counted out", func() bool { s := r.lane.Stats(); return s.Open+s.Foreign <= limit })
		eventually(t, "who came is idle", func() bool { return r.lane.Phases()["idle"]+r.lane.Away()["idle"] == limit })
		if s := r.lane.Stats(); s.Evicted != uint64(n+1) || s.Refused != 0 {
			t.Fatalf("%+v after %d", s, n+1)
		}
		r.lane.At(time.Duration(limit+n+1) * time.Second)
	}
}

// TestWhoIsBusyAtNetHTTPStays: a body under way is a request under way. A head under
// way goes, but after those that are idle.
func TestWhoIsBusyAtNetHTTPStays(t *testing.T) {
	r := start(t, true, still, func(s *setup) { s.lane.MaxConns = 3 })
	body, head, idle := r.dial(t), r.dial(t), r.dial(t)
	roundTrip(t, idle, page)
	r.lane.At(time.Second)
	roundTrip(t, head, page)
	if _, err := io.WriteString(body, "POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two are idle, one is busy", func() bool { p := r.lane.Away(); return p["idle"] == 2 && p["handing"] == 1 })
	if _, err := io.WriteString(head, "GET"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a head is under way", func() bool { return r.lane.Away()["heading"] == 1 })
	if a := roundTrip(t, idle, page); a.StatusCode != 200 {
		t.Fatal(a.StatusCode)
	}
	eventually(t, "the idle one is younger than the head", func() bool { return r.lane.Away()["idle"] == 1 })

	first := r.dial(t)
	roundTrip(t, first, live)
	ended(t, idle)
	eventually(t, "it is idle", func() bool { return r.lane.Phases()["idle"] == 1 && r.lane.Stats().Foreign == 2 })
	second := r.dial(t)
	if _, err := io.WriteString(second, "POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe"); err != nil {
		t.Fatal(err)
	}
	ended(t, first)
	eventually(t, "a second body", func() bool { return r.lane.Away()["handing"] == 2 })
	third := r.dial(t)
	if _, err := io.WriteString(third, "POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe"); err != nil {
		t.Fatal(err)
	}
	ended(t, head)
	eventually(t, "bodies alone", func() bool { return r.lane.Away()["handing"] == 3 })

	ended(t, r.dial(t)) // nobody can go
	for _, nc := range []net.Conn{body, second, third} {
		if a := roundTrip(t, nc, "llo"); a.StatusCode != 200 {
			t.Error(a.StatusCode)
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
	eventually(t, "it is idle", func() bool { return r.lane.Away()["idle"] == 1 })
	_ = dialTLS(t, r, "http/1.1")
	_, _ = io.Copy(io.Discard, old) // ends, or the test's time does
	eventually(t, "it is gone", func() bool { s := r.lane.Stats(); return s.Foreign == 0 && s.Evicted == 1 })
}
