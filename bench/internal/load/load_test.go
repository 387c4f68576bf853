package load_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"curt/bench/internal/load"
)

func get(b []byte) []byte { return append(b, "GET /x HTTP/1.1\r\nHost: bench\r\n\r\n"...) }

// serve runs a net/http server and returns its address.
func serve(t *testing.T, h http.HandlerFunc) netip.AddrPort {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return netip.MustParseAddrPort(s.Listener.Addr().String())
}

// raw runs a server that treats each connection by hand.
func raw(t *testing.T, handle func(net.Conn, *bufio.Reader)) netip.AddrPort {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				handle(c, bufio.NewReader(c))
			}()
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

// swallow reads one request without a body.
func swallow(r *bufio.Reader) error {
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\r\n" {
			return err
		}
	}
}

func run(t *testing.T, p load.Plan) load.Outcome {
	t.Helper()
	o, err := load.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestClosedLoopKeepsEveryConnectionBusyWithOneRequest(t *testing.T) {
	var served, flying, most, marks atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if n := flying.Add(1); n > most.Load() {
			most.Store(n)
		}
		served.Add(1)
		_, _ = io.WriteString(w, "hello")
		flying.Add(-1)
	})
	o := run(t, load.Plan{
		Streams: []load.Stream{{Addr: addr, Conns: 4, Want: 200, Next: get}},
		Warmup:  50 * time.Millisecond, Measure: 300 * time.Millisecond,
		Mark: func(bool) { marks.Add(1) },
	})
	s := o.Streams[0]
	if err := o.Wrong(); err != nil {
		t.Error(err)
	}
	if s.Answered < 100 || s.Answered > uint64(served.Load()) {
		t.Errorf("%d answers counted, %d served", s.Answered, served.Load())
	}
	// Requests on their way when the window opens or closes are in one only.
	if n := s.Latency.Count(); n+4 < s.Answered || n > s.Answered+4 {
		t.Errorf("%d latencies for %d answers", n, s.Answered)
	}
	if most.Load() > 4 || marks.Load() != 2 {
		t.Errorf("%d requests at once over 4 connections, %d marks", most.Load(), marks.Load())
	}
	if o.Window < 300*time.Millisecond || o.CPU <= 0 || o.CPU > o.Window {
		t.Errorf("window %s, CPU %s", o.Window, o.CPU)
	}
}

func TestOpenLoopArrivesOnTime(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	o := run(t, load.Plan{
		Streams: []load.Stream{{Addr: addr, Conns: 8, Rate: 1000, Want: 404, Next: get}},
		Warmup:  50 * time.Millisecond, Measure: time.Second,
	})
	s := o.Streams[0]
	if err := o.Wrong(); err != nil {
		t.Error(err)
	}
	// 1,000 arrivals of a Poisson process: 6 sigma are 190.
	if n := s.Latency.Count(); n < 810 || n > 1190 || s.Late.Count() != n {
		t.Errorf("%d requests in a second at 1,000/s, lateness of %d", n, s.Late.Count())
	}
	if p := s.Late.Quantile(0.5); p > 5*time.Millisecond {
		t.Errorf("half of the requests were sent %s late", p)
	}
}

// TestStallIsSeenByEveryRequestThatWasDue is the whole point of an open loop: one
// connection, a server that stops once for 400 ms. A closed loop would see one
// slow request.
func TestStallIsSeenByEveryRequestThatWasDue(t *testing.T) {
	const rate, stall = 500, 400 * time.Millisecond
	var served atomic.Int64
	addr := serve(t, func(http.ResponseWriter, *http.Request) {
		if served.Add(1) == rate/4 {
			time.Sleep(stall)
		}
	})
	o := run(t, load.Plan{
		Streams: []load.Stream{{Addr: addr, Conns: 1, Rate: rate, Want: 200, Next: get}},
		Measure: time.Second,
	})
	s := o.Streams[0]
	if err := o.Wrong(); err != nil {
		t.Error(err)
	}
	// 200 of 500 requests came due during the stall: half of those, a fifth of all,
	// waited for half of it or longer.
	if p := s.Latency.Quantile(0.87); p < stall/2 {
		t.Errorf("p87 = %s after a stall of %s: requests that had to wait were not counted", p, stall)
	}
	if late := s.Late.Quantile(0.87); late < stall/2 {
		t.Errorf("lateness p87 = %s", late)
	}
}

func TestAnswersInPiecesAndEndingConnections(t *testing.T) {
	addr := raw(t, func(c net.Conn, r *bufio.Reader) {
		if swallow(r) != nil {
			return
		}
		for _, piece := range []string{"HTTP/1.1 302 Fo", "und\r\ncontent-LENGTH:  3 \r\nCONNECTION: Close\r\n\r", "\nab", "c"} {
			_, _ = io.WriteString(c, piece)
			time.Sleep(time.Millisecond) // the pieces must arrive apart
		}
	})
	o := run(t, load.Plan{
		Streams: []load.Stream{{Addr: addr, Conns: 2, Want: 302, Next: get}},
		Measure: 200 * time.Millisecond,
	})
	if err := o.Wrong(); err != nil {
		t.Error(err)
	}
	if o.Streams[0].Answered < 5 {
		t.Errorf("%d answers", o.Streams[0].Answered)
	}
}

func TestWhatIsWrongIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		answer string // "" = hang up
		want   string
	}{
		"status":       {"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "status 503"},
		"hang up":      {"", "closed the connection"},
		"length":       {"HTTP/1.1 200 OK\r\n\r\n", "without Content-Length"},
		"two answers":  {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n", "bytes behind"},
		"not HTTP":     {"SSH-2.0-OpenSSH_9.9\r\n\r\n", "malformed head"},
		"endless body": {"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			addr := raw(t, func(conn net.Conn, r *bufio.Reader) {
				for swallow(r) == nil {
					time.Sleep(time.Millisecond) // not a flood of errors
					if _, err := io.WriteString(conn, c.answer); err != nil || c.answer == "" {
						return
					}
				}
			})
			o := run(t, load.Plan{
				Streams: []load.Stream{{Addr: addr, Conns: 1, Want: 200, Next: get}},
				Measure: 50 * time.Millisecond,
			})
			if err := o.Wrong(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("wrong: %v, want %q", err, c.want)
			}
			if n := o.Streams[0].Answered + o.Streams[0].Latency.Count(); n != 0 {
				t.Errorf("%d of them counted as right", n)
			}
		})
	}
}

func TestNoAnswerEndsAfterTheDrain(t *testing.T) {
	addr := raw(t, func(_ net.Conn, r *bufio.Reader) {
		_, _ = io.Copy(io.Discard, r)
	})
	o := run(t, load.Plan{ // ends, though nobody answers
		Streams: []load.Stream{{Addr: addr, Conns: 2, Rate: 200, Want: 200, Next: get}},
		Measure: 100 * time.Millisecond, Drain: 100 * time.Millisecond,
	})
	err := o.Wrong()
	if err == nil || !strings.Contains(err.Error(), "2 × no answer in time") || !strings.Contains(err.Error(), "never sent") {
		t.Errorf("wrong: %v", err)
	}
}

func TestRunEndsWithItsContextAndItsServer(t *testing.T) {
	addr := serve(t, func(http.ResponseWriter, *http.Request) {})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	plan := load.Plan{Streams: []load.Stream{{Addr: addr, Conns: 1, Want: 200, Next: get}}, Measure: time.Hour}
	if _, err := load.Run(ctx, plan); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline", err)
	}
	plan.Streams[0].Addr = netip.MustParseAddrPort("127.0.0.1:1")
	if _, err := load.Run(t.Context(), plan); err == nil {
		t.Error("a run without a server succeeded")
	}
	if _, err := load.Run(t.Context(), load.Plan{Measure: time.Second}); err == nil {
		t.Error("a plan without streams succeeded")
	}
}

// TestRefusedConnectClosesItsOwnSocket and no other: standard input is the descriptor 0,
// and so is a socket that was made once it was closed.
func TestRefusedConnectClosesItsOwnSocket(t *testing.T) {
	const folder, tries = "/proc/self/fd", 50
	first, err := os.Readlink(folder + "/0")
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	plan := load.Plan{
		Streams: []load.Stream{{Addr: netip.MustParseAddrPort("127.0.0.1:1"), Conns: 1, Want: 200, Next: get}},
		Measure: time.Second,
	}
	for range tries {
		if _, err := load.Run(t.Context(), plan); err == nil || errors.Is(err, unix.EBADF) {
			t.Fatalf("error %v of a refused connection", err)
		}
	}
	after, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	// Sockets of other tests may end meanwhile, and few begin.
	if len(after) >= len(before)+tries/2 {
		t.Errorf("%d descriptors are open after %d refused connections, %d were before", len(after), tries, len(before))
	}
	if now, err := os.Readlink(folder + "/0"); err != nil || now != first {
		t.Errorf("descriptor 0 is %q, was %q: %v", now, first, err)
	}
}

// A server may close a connection that it kept just when a request comes. Once in a while
// the request is repeated; a server that does so all the time is wrong.
func TestRequestsThatMeetAnEndAreRepeated(t *testing.T) {
	for _, c := range []struct {
		every int64 // requests
		wrong bool
	}{{3000, false}, {5, true}} {
		var served atomic.Int64
		addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if served.Add(1)%c.every == 0 {
				panic(http.ErrAbortHandler) // ends the connection without an answer
			}
		})
		// A closed loop, and for longer where a machine is too busy to come to an end of the kind.
		plan := load.Plan{Streams: []load.Stream{{Addr: addr, Conns: 4, Want: 200, Next: get}}, Measure: 500 * time.Millisecond}
		o := run(t, plan)
		for ; o.Streams[0].Repeated == 0 && plan.Measure < time.Minute; plan.Measure *= 2 {
			o = run(t, plan)
		}
		if o.Streams[0].Repeated == 0 || len(o.Streams[0].Wrong) > 0 && !c.wrong || (o.Wrong() != nil) != c.wrong {
			t.Errorf("an end every %d requests: %d repeated, %v", c.every, o.Streams[0].Repeated, o.Wrong())
		}
	}
}
