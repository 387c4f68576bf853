package lane_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// padded is live with so many bytes that sixty of them do not fit into net/http's
// buffer: what it leaves in the kernel's is what makes a plain close a reset.
const padding = 1 << 10

func padded() string {
	return strings.Replace(live, "\r\n\r\n", "\r\nX: "+strings.Repeat("x", padding)+"\r\n\r\n", 1)
}

// farewell reads answers until one says Connection: close, and then nothing but a
// clean end. It returns how many there were.
func farewell(t *testing.T, nc net.Conn) (n int) {
	t.Helper()
	in := bufio.NewReader(nc)
	for {
		a, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("after %d answers: %v", n, err)
		}
		_, _ = io.Copy(io.Discard, a.Body)
		_ = a.Body.Close()
		if n++; a.Close {
			break
		}
	}
	if b, err := io.ReadAll(in); err != nil || len(b) != 0 {
		t.Fatalf("behind the last of %d answers: %q and %v", n, b, err)
	}
	return n
}

// unread has a body that nobody reads, and too long for net/http to wait for: it ends
// the connection, which the client did not ask for.
const unread = "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"

// comeHome makes net/http's connection the lane's again, as parting: the client is
// told to leave and does not.
func comeHome(t *testing.T, r *rig) *net.TCPConn {
	t.Helper()
	nc := r.dial(t)
	if a := roundTrip(t, nc, unread); !a.Close {
		t.Fatal("net/http keeps the connection")
	}
	eventually(t, "it lingers", func() bool { return r.lane.States()["lingering"] == 1 && r.lane.Stats().AtHTTP == 0 })
	return nc
}

// TestTheLastAnswerOfAPipelineArrives: a client that has sent more requests than it
// will be answered reads every answer and a clean end, never a reset.
func TestTheLastAnswerOfAPipelineArrives(t *testing.T) {
	for name, on := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			options := []option{still} // or who reads late is not waited for
			if on {
				options = append(options, withTLS(certificate(t)))
			}
			r := start(t, true, options...)
			for range 10 {
				var nc net.Conn = r.dial(t)
				if on {
					_ = nc.Close()
					nc = dialTLS(t, r, "http/1.1")
				}
				if _, err := io.WriteString(nc, page+unread+strings.Repeat(padded(), 60)); err != nil {
					t.Fatal(err)
				}
				if n := farewell(t, nc); n != 2 {
					t.Errorf("%d answers, want the page's and the last", n)
				}
				_ = nc.Close()
			}
		})
	}
}

// TestTheLastAnswerOfADrainArrives: the lane asks to leave, and the client's next
// request is on its way already.
func TestTheLastAnswerOfADrainArrives(t *testing.T) {
	r := start(t, true, still) // or who asks late counts as silent
	nc := r.dial(t)
	roundTrip(t, nc, live)
	r.lane.BeginDrain()
	if a := roundTrip(t, nc, live); !a.Close {
		t.Fatal("not asked to leave")
	}
	for range 20 {
		if _, err := io.WriteString(nc, padded()); err != nil {
			t.Fatal(err)
		}
	}
	ended(t, nc)
	if b, err := io.ReadAll(nc); err != nil {
		t.Errorf("%q and %v instead of a clean end", b, err)
	}
}

// TestWhoLingersIsBounded: by time, by bytes, and by the cap on connections.
func TestWhoLingersIsBounded(t *testing.T) {
	t.Run("time", func(t *testing.T) {
		r := start(t, true, still)
		comeHome(t, r)
		r.lane.At(900 * time.Millisecond)
		if n := r.lane.States()["lingering"]; n != 1 {
			t.Errorf("%d linger after 900 ms", n)
		}
		at := 900 * time.Millisecond
		eventually(t, "gone", func() bool {
			at += time.Second // again: who has just begun to linger may do so anew, and lift the first one's deadline
			r.lane.At(at)
			s := r.lane.Stats()
			return s.Open == 0 && s.TimedOut == 1
		})
	})
	t.Run("bytes", func(t *testing.T) {
		r := start(t, true, still)
		nc := comeHome(t, r)
		var err error
		for n := 0; err == nil; n++ {
			if n > 64 {
				t.Fatal("64 MiB were taken")
			}
			_, err = nc.Write(make([]byte, 1<<20))
		}
		eventually(t, "gone", func() bool { return r.lane.Stats().Open == 0 })
	})
	t.Run("cap", func(t *testing.T) {
		r := start(t, true, still, func(s *setup) { s.lane.MaxConns = 2 })
		comeHome(t, r)
		idle := r.dial(t)
		roundTrip(t, idle, live)
		roundTrip(t, r.dial(t), live)
		roundTrip(t, idle, live) // it was there before, but the one that lingered went
		if s := r.lane.Stats(); s.Evicted != 1 || s.Refused != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestSettleEndsWhoLingers: within its context, and nobody lingers afterwards.
func TestSettleEndsWhoLingers(t *testing.T) {
	r := start(t, true, still)
	nc := comeHome(t, r)
	other := r.dial(t)
	roundTrip(t, other, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	r.lane.AwaitLingering(over)
	if n := r.lane.States()["lingering"]; n != 0 {
		t.Errorf("%d linger afterwards", n)
	}
	ended(t, nc)
	_ = r.behind.Close()
	ended(t, other)
	// The client sees the end a moment before the connection is no longer counted.
	eventually(t, "gone", func() bool { s := r.lane.Stats(); return s.Open == 0 && s.AtHTTP == 0 })
}

// TestAClosedServerReadsNoMore: net/http's reader leaves when its server closes the
// connection, and what the client sends then is no request.
func TestAClosedServerReadsNoMore(t *testing.T) {
	r := start(t, true)
	for _, request := range []string{live, "POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhello"} {
		nc := r.dial(t)
		roundTrip(t, nc, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		r.rec.take()
		if err := r.behind.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
		_, _ = io.WriteString(nc, request) // the server may have gone
		ended(t, nc)
		if n := len(r.rec.take()); n != 0 {
			t.Errorf("%d clicks after the server was closed", n)
		}
		r = start(t, true)
	}
}
