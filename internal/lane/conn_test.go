package lane_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/internal/lane/lanetest"
)

// reply is an answer whose body was read.
type reply struct {
	StatusCode int
	Close      bool
	Header     http.Header
}

// roundTrip sends a request without a body and reads its answer.
func roundTrip(tb testing.TB, nc net.Conn, request string) reply {
	tb.Helper()
	if _, err := io.WriteString(nc, request); err != nil {
		tb.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	r, err := http.ReadResponse(bufio.NewReader(nc), &http.Request{Method: method})
	if err != nil {
		tb.Fatalf("%q: %v", request, err)
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		tb.Fatal(err)
	}
	_ = r.Body.Close()
	return reply{r.StatusCode, r.Close, r.Header}
}

// rest is all that comes until the server closes.
func rest(tb testing.TB, nc net.Conn) string {
	tb.Helper()
	b, err := io.ReadAll(nc)
	if err != nil && !strings.Contains(err.Error(), "reset by peer") {
		tb.Fatalf("%v after %q", err, b)
	}
	return string(b)
}

const live = "GET /live HTTP/1.1\r\nHost: links.example\r\n\r\n"

func TestKeepAlive(t *testing.T) {
	r := start(t, true)
	nc := r.dial(t)
	began := time.Now().Add(-time.Second) // Date has no fractions
	for range 200 {
		for request, want := range map[string]int{
			lanetest.Browser: 302, live: 302, "HEAD /live HTTP/1.1\r\nHost: x\r\n\r\n": 302, "GET /none HTTP/1.1\r\nHost: x\r\n\r\n": 404,
			"HEAD /gone HTTP/1.1\r\nHost: x\r\n\r\n": 410,
		} {
			a := roundTrip(t, nc, request)
			if a.StatusCode != want || a.Close {
				t.Fatalf("%q: %d, close %v", request, a.StatusCode, a.Close)
			}
			if date, err := http.ParseTime(a.Header.Get("Date")); err != nil || date.Before(began) || date.After(time.Now()) {
				t.Fatalf("Date %q", a.Header.Get("Date"))
			}
		}
	}
	if s := r.lane.Stats(); s.HandedOff != 0 || s.Accepted != 1 {
		t.Errorf("%+v: plain requests left the lane", s)
	}
	clicks := 0 // the last is recorded behind its answer
	eventually(t, "every answer is a click", func() bool { clicks += len(r.rec.take()); return clicks >= 1000 })
	if clicks != 1000 {
		t.Errorf("%d clicks of 1000 answers", clicks)
	}
}

func TestConnectionCloseIsHonoured(t *testing.T) {
	r := start(t, true)
	for _, path := range []string{"live", "none"} {
		nc := r.dial(t)
		if a := roundTrip(t, nc, "GET /"+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !a.Close {
			t.Errorf("/%s: the answer does not say close", path)
		}
		if b := rest(t, nc); b != "" {
			t.Errorf("/%s: %q behind the last answer", path, b)
		}
	}
}

func TestLongHeads(t *testing.T) {
	r := start(t, true)
	head := func(n int) string {
		start, end := "GET /live HTTP/1.1\r\nHost: x\r\nX: ", "\r\n\r\n"
		return start + strings.Repeat("x", n-len(start)-len(end)) + end
	}
	many := "GET /live HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 100_000) + "\r\n"
	for _, c := range []struct {
		name, request, want string
	}{
		{"1 KiB", head(1 << 10), "302"},
		{"4 KiB", head(4 << 10), "302"},
		{"4 KiB and one", head(4<<10 + 1), "302"},
		{"16 KiB", head(16 << 10), "302"},
		{"16 KiB and one", head(16<<10 + 1), "431"},
		{"17 KiB", head(17 << 10), "431"},
		{"1 MiB", head(1 << 20), "431"},
		{"100,000 lines", many, "431"},
		{"endless first line", "GET /" + strings.Repeat("a", 1<<20), "431"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, seed := range []uint64{0, 2, 3} {
				if got := statuses(answers(t, r.exchange(t, lanetest.Cut(c.request, seed)...))); got != c.want {
					t.Errorf("in pieces by %d: %s", seed, got)
				}
			}
		})
	}
	if got := statuses(answers(t, r.exchange(t, lanetest.Cut(head(17<<10), 1)...))); got != "431" {
		t.Errorf("17 KiB in single bytes: %s", got)
	}
}

// Who takes no answers is left with his own.
func TestSlowReader(t *testing.T) {
	r := start(t, true)
	slow := r.dial(t)
	if err := slow.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		_ = slow.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := io.WriteString(slow, live); err != nil {
			break // nobody takes it
		}
		if n == 200_000 {
			t.Fatal("the slow reader is never held up: this proves nothing")
		}
	}
	other := r.dial(t)
	for range 1000 {
		roundTrip(t, other, live)
	}
}

// A busy connection is not asked for its end after each request: an end that came
// with the bytes is found by the sweeper's call, soon and not after the idle limit.
func TestTheEndThatCameWithARequest(t *testing.T) {
	r := start(t, true)
	var all []*net.TCPConn
	for range 50 {
		nc := r.dial(t)
		for range 3 {
			roundTrip(t, nc, live)
		}
		if _, err := io.WriteString(nc, live); err != nil {
			t.Fatal(err)
		}
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		all = append(all, nc)
	}
	for _, nc := range all { // the client's patience is shorter than the idle limit
		if got := statuses(answers(t, rest(t, nc))); got != "302" {
			t.Fatal(got)
		}
	}
	if n := r.lane.Stats().TimedOut; n != 0 {
		t.Errorf("%d ends were those of silent clients", n)
	}
	// A quiet connection that was woken serves on, in the lane and at net/http.
	nc := r.dial(t)
	for range 3 {
		roundTrip(t, nc, live)
	}
	handed := r.lane.Stats().HandedOff
	r.lane.Interrupt()
	roundTrip(t, nc, live)
	roundTrip(t, nc, live)
	roundTrip(t, nc, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	r.lane.Interrupt()
	if a := roundTrip(t, nc, live); a.Close {
		t.Error("a connection did not live through being woken")
	}
	eventually(t, "it was handed over once", func() bool { return r.lane.Stats().HandedOff == handed+1 })
}
