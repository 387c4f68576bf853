package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"curt/internal/lane"
)

// bounded starts net/http under a cap, and returns it with a way to connect.
func bounded(t *testing.T, limit int) (*capped, func() net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &capped{Listener: l, limit: limit}
	s := &http.Server{ReadHeaderTimeout: headTimeout, ConnState: c.track, Handler: http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(c) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return c, func() net.Conn {
		nc, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		_ = nc.SetDeadline(time.Now().Add(time.Minute))
		return nc
	}
}

// say sends, and asks for an answer.
func say(t *testing.T, nc net.Conn, request string) {
	t.Helper()
	if _, err := io.WriteString(nc, request); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Error(r.Status)
	}
}

// gone waits for the end of a connection.
func gone(t *testing.T, nc net.Conn) {
	t.Helper()
	if b, err := io.ReadAll(nc); err != nil || len(b) != 0 {
		t.Errorf("%q and %v instead of the end", b, err)
	}
}

// until waits for what net/http's goroutines are about to do.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}

func (l *capped) spareIn(state int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spare[state].Len()
}

const plain, half = "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe"

// TestTheCapWithoutALane: idle connections go first, the oldest of them at first, then
// silent ones, then heads under way; requests under way stay, and then who comes is closed.
func TestTheCapWithoutALane(t *testing.T) {
	c, dial := bounded(t, 4)
	heading, silent, old, young := dial(), dial(), dial(), dial()
	if _, err := io.WriteString(heading, plain[:9]); err != nil {
		t.Fatal(err)
	}
	until(t, "a head is under way", func() bool { return c.spareIn(guestHeading) == 1 })
	say(t, old, plain)
	until(t, "the old one is idle", func() bool { return c.spareIn(guestIdle) == 1 })
	say(t, young, plain)
	until(t, "both are idle", func() bool { return c.spareIn(guestIdle) == 2 && c.spareIn(guestFresh) == 1 })
	var busy []net.Conn
	for _, leaves := range []net.Conn{old, young, silent, heading} {
		nc := dial()
		busy = append(busy, nc)
		gone(t, leaves)
		if _, err := io.WriteString(nc, half); err != nil {
			t.Fatal(err)
		}
		until(t, "it is busy", func() bool {
			return c.stats().Foreign == 4 && c.spareIn(guestIdle)+c.spareIn(guestFresh)+c.spareIn(guestHeading) == 4-len(busy)
		})
	}
	gone(t, dial())
	for _, nc := range busy {
		say(t, nc, "llo")
	}
	if s, want := c.stats(), (lane.Stats{Foreign: 4, Accepted: 8, Evicted: 4, Refused: 1}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	for _, nc := range busy {
		_ = nc.Close()
	}
	until(t, "all are counted out", func() bool { return c.stats().Foreign == 0 })
}
