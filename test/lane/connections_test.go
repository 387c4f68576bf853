package lane_test

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// follow asks for the link on the connection.
func follow(t *testing.T, c *curttest.Conn, l curttest.Link) curttest.Answer {
	t.Helper()
	a, err := c.Do("GET", "/"+l.Code, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if to, _ := a.Get("Location"); a.Status != 302 || to != l.LongURL {
		t.Fatalf("%d to %q, want 302 to %s", a.Status, to, l.LongURL)
	}
	return a
}

// metric returns a metric, which must be there.
func metric(t *testing.T, s *curttest.Server, name string) float64 {
	t.Helper()
	v, found, err := s.Metric(t.Context(), name)
	if err != nil || !found {
		t.Fatalf("%s: found %v, %v", name, found, err)
	}
	return v
}

// await polls a metric until it is as wanted.
func await(t *testing.T, s *curttest.Server, name string, want func(float64) bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		v := metric(t, s, name)
		if want(v) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is %v", name, v)
		}
	}
}

// refused reports whether the server ended the connection instead of answering.
func refused(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// TestTheCapOnConnections fills the cap: who comes then takes the place of who was
// idle longest, and of nobody else.
func TestTheCapOnConnections(t *testing.T) {
	const limit = 8
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_MAX_CONNECTIONS=8"}})
	creator := s.MustDial(t)
	link, _, err := creator.Create("https://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	creator.Close() // or it is the one that is idle longest
	await(t, s, "curt_lane_foreign_connections", func(v float64) bool { return v == 0 })
	await(t, s, "curt_lane_connections", func(v float64) bool { return v == 0 })
	oldest := s.MustDial(t)
	begun, _ := follow(t, oldest, link).Get("Date")
	others := []*curttest.Conn{s.MustDial(t)}
	for now := begun; now == begun; { // until the lane's clock tells the two apart
		now, _ = follow(t, others[0], link).Get("Date")
	}
	for len(others) < limit-1 {
		others = append(others, s.MustDial(t))
		follow(t, others[len(others)-1], link)
	}
	await(t, s, "curt_lane_connections", func(v float64) bool { return v == limit })
	if n := metric(t, s, "curt_lane_evicted_total"); n != 0 {
		t.Fatalf("%v connections were closed below the cap", n)
	}
	follow(t, s.MustDial(t), link)
	if _, err := oldest.Do("GET", "/"+link.Code, nil, ""); !refused(err) {
		t.Errorf("the connection that was idle longest: %v", err)
	}
	for _, c := range others {
		follow(t, c, link)
	}
	if n := metric(t, s, "curt_lane_evicted_total"); n != 1 {
		t.Errorf("%v connections were closed for one that came", n)
	}
}

// TestIdleConnectionsLockNobodyOut fills the cap with connections that are idle at
// net/http: whoever comes is answered all the same, with and without the lane.
func TestIdleConnectionsLockNobodyOut(t *testing.T) {
	const limit, visitors = 8, 40
	for _, mode := range []string{"on", "off"} {
		t.Run("CURT_LANE="+mode, func(t *testing.T) {
			s := curttest.Start(t, curttest.Options{Env: []string{"CURT_MAX_CONNECTIONS=8", "CURT_LANE=" + mode}})
			await(t, s, "curt_lane_foreign_connections", func(v float64) bool { return v == 0 }) // the start's probes
			before := metric(t, s, "curt_lane_evicted_total")
			for n := range limit + visitors {
				if a, err := s.MustDial(t).Do("GET", "/healthz", nil, ""); err != nil || a.Status != 200 {
					t.Fatalf("client %d: %d, %v", n, a.Status, err)
				}
			}
			if n := metric(t, s, "curt_lane_evicted_total") - before; n < visitors {
				t.Errorf("%v were closed for %d", n, visitors)
			}
			if n := metric(t, s, "curt_lane_refused_total"); n != 0 {
				t.Errorf("%v were refused", n)
			}
		})
	}
}

// TestNobodyCanGo: at the cap, with every connection worked for, who comes is closed, and
// those who are there are served on. What the server feeds is such, however long it is silent.
//
// A write counts as the client's to take until its goroutine runs again, which nobody is told: where a busy machine let it
// wait, somebody could go, and another server has more time.
func TestNobodyCanGo(t *testing.T) {
	for _, mode := range []string{"on", "off"} {
		t.Run("CURT_LANE="+mode, func(t *testing.T) {
			for pause := 30 * time.Millisecond; !nobodyCanGo(t, mode, pause); pause *= 5 {
				if pause > time.Minute {
					t.Fatal("a connection above the cap is let in")
				}
			}
		})
	}
}

// nobodyCanGo fills the cap with streams, and reports whether one that comes after a pause is closed.
func nobodyCanGo(t *testing.T, mode string, pause time.Duration) bool {
	t.Helper()
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_MAX_CONNECTIONS=3", "CURT_LANE=" + mode}})
	await(t, s, "curt_lane_foreign_connections", func(v float64) bool { return v == 0 })
	await(t, s, "curt_lane_connections", func(v float64) bool { return v == 0 })
	var all []*curttest.Conn
	for range 3 {
		c := s.MustDial(t)
		if err := c.Send("GET /api/v1/clicks/live HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + curttest.Key + "\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if a, err := c.Read("HEAD"); err != nil || a.Status != 200 { // the head alone: what follows does not end
			t.Fatal(a.Status, err)
		}
		all = append(all, c)
	}
	await(t, s, "curt_lane_foreign_connections", func(v float64) bool { return v == 3 })
	time.Sleep(pause)
	if _, err := s.MustDial(t).Do("GET", "/healthz", nil, ""); !refused(err) {
		t.Logf("a connection above the cap, after %s: %v", pause, err)
		return false
	}
	if n := metric(t, s, "curt_lane_foreign_connections"); n != 3 {
		t.Errorf("%v streams are left", n)
	}
	if n := metric(t, s, "curt_lane_evicted_total"); n != 0 {
		t.Errorf("%v evicted", n)
	}
	if n := metric(t, s, "curt_lane_refused_total"); n < 1 {
		t.Errorf("%v refused", n)
	}
	for _, c := range all {
		c.Close()
	}
	if strings.Contains(s.Log(), "panic") {
		t.Error("a panic")
	}
	return true
}
