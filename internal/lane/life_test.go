package lane_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"curt/internal/lane"
	"curt/internal/lane/lanetest"
	"curt/internal/redirect"
)

// ended waits until the server has closed the connection.
func ended(t *testing.T, nc net.Conn) {
	t.Helper()
	if b := rest(t, nc); b != "" {
		t.Errorf("%q before the end", b)
	}
}

// silent opens connections in every state in which a client can be silent.
func silent(t *testing.T, r *rig, n int) (all []net.Conn) {
	t.Helper()
	for i := range n {
		nc := r.dial(t)
		switch i % 4 {
		case 0: // says nothing at all
		case 1:
			roundTrip(t, nc, live)
		case 2:
			roundTrip(t, nc, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") // idle at net/http
		case 3:
			if _, err := io.WriteString(nc, live+live[:10]); err != nil { // pipelined: in the middle of a head at net/http
				t.Fatal(err)
			}
		}
		all = append(all, nc)
	}
	return all
}

func TestDrainEndsAThousandSilentClients(t *testing.T) {
	r := start(t, true, still)
	all := silent(t, r, 1000)
	eventually(t, "all are where they should be", func() bool {
		p, s := r.lane.States(), r.lane.Stats()
		return s.Accepted == 1000 && s.AtHTTP == 500 && p["new"] == 250 && p["idle"]+p["unread"] == 250
	})
	r.lane.BeginDrain()
	r.lane.At(lane.DrainIdle)
	if s := r.lane.Stats(); s.TimedOut != 0 || s.Open != 500 {
		t.Errorf("%+v before their time", s)
	}
	r.lane.At(lane.DrainIdle + time.Millisecond)
	if err := r.lane.Shutdown(t.Context()); err != nil { // returns when the last is gone
		t.Error(err)
	}
	if n := r.lane.Stats().TimedOut; n != 500 {
		t.Errorf("%d were silent for too long", n)
	}
	_ = r.behind.Close()
	for i, nc := range all {
		if i%4 < 2 {
			ended(t, nc)
		} else {
			_, _ = io.Copy(io.Discard, nc) // ends, or the test's time does
		}
	}
}

func TestDrainingAnswersOnceMore(t *testing.T) {
	r := start(t, true, still) // or who is answered late counts as silent
	idle, fresh := r.dial(t), r.dial(t)
	roundTrip(t, idle, live)
	eventually(t, "both are accepted", func() bool { return r.lane.Stats().Accepted == 2 })
	r.lane.BeginDrain()
	late := r.dial(t)
	for name, nc := range map[string]net.Conn{"idle": idle, "accepted before": fresh, "accepted after": late} {
		if a := roundTrip(t, nc, live); !a.Close || a.StatusCode != 302 {
			t.Errorf("%s: %d, close %v", name, a.StatusCode, a.Close)
		}
		ended(t, nc)
		_ = nc.Close() // or the lane lingers
	}
	if err := r.lane.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(r.rec.take()); n != 4 {
		t.Errorf("%d clicks of 4 answers", n)
	}
}

// TestDrainCutsOffAtTheLimit: clients in the middle of a head, and connections that
// nobody takes at net/http, do not keep the lane.
func TestDrainCutsOffAtTheLimit(t *testing.T) {
	r := start(t, true, still) // or the head is late before the drain
	_ = r.behind.Close()       // nobody accepts what is handed over; Close closes the listener too
	half := r.dial(t)
	if _, err := io.WriteString(half, live[:20]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "accepted", func() bool { return r.lane.Stats().Open == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.lane.Shutdown(ctx); err == nil {
		t.Error("a client in the middle of a head counts as gone")
	}
	ended(t, half)
	if s := r.lane.Stats(); s.Open != 0 {
		t.Errorf("%+v", s)
	}
}

// TestHandOverWaitsForNetHTTP: a connection is never between two owners, so a drain
// ends those that nobody has taken.
func TestHandOverWaitsForNetHTTP(t *testing.T) {
	cfg := lane.Config{Recorder: nothing{}}
	h, c := visitors(t, &redirect.HandlerConfig{}, links(), nothing{}, nil, nil)
	cfg.Visitors, cfg.Cache = h, c
	l, err := lane.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve(listener) }()
	r := &rig{addr: listener.Addr().String()}
	nc := r.dial(t)
	if _, err := io.WriteString(nc, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "accepted", func() bool { return l.Stats().Open == 1 })
	_ = listener.Close()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := l.Shutdown(ctx); err == nil {
		t.Error("drained although a connection waits for net/http")
	}
	_, _ = io.Copy(io.Discard, nc)
	if s := l.Stats(); s.Open != 0 || s.HandedOff != 0 {
		t.Errorf("%+v", s)
	}
}

func TestSweeperEndsWhoIsLate(t *testing.T) {
	r := start(t, true, still)
	fresh, half, idle, foreign := r.dial(t), r.dial(t), r.dial(t), r.dial(t)
	if _, err := io.WriteString(half, live[:20]); err != nil {
		t.Fatal(err)
	}
	roundTrip(t, idle, live)
	roundTrip(t, foreign, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	eventually(t, "all are where they should be", func() bool {
		p := r.lane.States() // an answer is read before its connection says that it is idle
		return p["new"] == 1 && p["reading"] == 1 && p["idle"] == 1 && r.lane.Stats().AtHTTP == 1
	})
	r.lane.At(9 * time.Second)
	if s := r.lane.Stats(); s.TimedOut != 0 {
		t.Fatalf("%+v after 9 s", s)
	}
	r.lane.At(12 * time.Second)
	ended(t, fresh)
	_, _ = io.Copy(io.Discard, half)
	eventually(t, "who sends no head is gone", func() bool { s := r.lane.Stats(); return s.Open == 1 && s.TimedOut == 2 })
	r.lane.At(74 * time.Second)
	eventually(t, "idle is not late", func() bool { s := r.lane.Stats(); return s.Open == 1 && s.TimedOut == 2 })
	r.lane.At(78 * time.Second)
	ended(t, idle)
	if a := roundTrip(t, foreign, live); a.StatusCode != 302 {
		t.Errorf("the sweeper reaches what net/http has: %d", a.StatusCode)
	}
}

// TestLimitsHoldAfterTheHandOver: the time-outs of the http.Server apply to a
// connection that it was given, from the moment that it was given.
func TestLimitsHoldAfterTheHandOver(t *testing.T) {
	r := start(t, true, func(s *setup) {
		s.server.IdleTimeout, s.server.ReadTimeout = 50*time.Millisecond, 50*time.Millisecond
	})
	idle := r.dial(t)
	roundTrip(t, idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	ended(t, idle)
	body := r.dial(t)
	if _, err := io.WriteString(body, "POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe"); err != nil {
		t.Fatal(err)
	}
	if got := statuses(answers(t, rest(t, body))); got != "400" {
		t.Errorf("a slow body: %q", got)
	}
}

func TestTheOldestIdleConnectionMakesRoom(t *testing.T) {
	const limit = 10
	r := start(t, true, still, func(s *setup) { s.lane.MaxConns = limit })
	var all []net.Conn
	for i := range limit {
		nc := r.dial(t)
		roundTrip(t, nc, live)
		all = append(all, nc)
		eventually(t, "it is idle", func() bool { return r.lane.States()["idle"] == i+1 })
		if i == 0 {
			r.lane.At(time.Second) // the first is older
		}
	}
	extra := r.dial(t)
	roundTrip(t, extra, live)
	ended(t, all[0])
	for _, nc := range all[1:] {
		roundTrip(t, nc, live)
	}
	if s := r.lane.Stats(); s.Evicted != 1 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
}

// TestBytesInAreBytesSeen sends bodies behind heads in every cut and compares what the
// handler at net/http read.
func TestBytesInAreBytesSeen(t *testing.T) {
	r := start(t, true)
	for size := 0; size < 20_000; size += 997 {
		body := strings.Repeat("0123456789", size/10+1)[:size]
		request := fmt.Sprintf("%sPOST /api/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", live, size, body)
		for seed := range uint64(5) {
			if seed == 1 && size > 2000 {
				continue
			}
			all := answers(t, r.exchange(t, lanetest.Cut(request, seed)...))
			if len(all) != 2 || all[1].Body != "POST /api/x "+body {
				t.Fatalf("%d bytes in pieces by %d: %d answers", size, seed, len(all))
			}
		}
	}
}

// TestNobodyIsEvictedTwice: who was chosen is closed behind the lock, and who chooses meanwhile
// does not count them again. Otherwise the limit would grow with every such moment.
func TestNobodyIsEvictedTwice(t *testing.T) {
	r := start(t, true, still)
	for range 40 {
		r.dial(t)
	}
	eventually(t, "all are there", func() bool { return r.lane.States()["new"] == 40 })
	if n := r.lane.EvictTwice(10); n != 0 {
		t.Errorf("%d were evicted twice", n)
	}
	eventually(t, "they left", func() bool { return r.lane.Stats().Open == 20 })
	if n := r.lane.Evicting(); n != 0 {
		t.Errorf("%d are still to leave", n)
	}
}
