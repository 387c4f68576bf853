package connlimit_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"curt/internal/clientaddr"
	"curt/internal/connlimit"
)

// bounded starts net/http under a limit, and returns it with a way to connect. Its handler
// reads the body, and /work waits for release.
func bounded(t *testing.T, limit int, release <-chan struct{}) (*connlimit.Listener, func() net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := connlimit.NewListener(l, limit, clientaddr.Rule{})
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/work" {
			<-release
		}
	})}
	c.Guard(s)
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
		_ = nc.SetDeadline(time.Now().Add(2 * time.Minute))
		return nc
	}
}

func send(t *testing.T, nc net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatal(err)
	}
}

// say sends, and asks for an answer.
func say(t *testing.T, nc net.Conn, request string) {
	t.Helper()
	send(t, nc, request)
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
	if b, err := io.ReadAll(nc); len(b) != 0 || errors.Is(err, errors.ErrUnsupported) {
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

const (
	plain = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	work  = "GET /work HTTP/1.1\r\nHost: x\r\n\r\n"
	half  = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe"
)

// TestOrder: idle connections go first, the oldest of them at first, then whatever is unfinished,
// the slowest at first; who is worked for stays, and then who comes is closed.
func TestOrder(t *testing.T) {
	release := make(chan struct{})
	c, dial := bounded(t, 4, release)
	uploads := dial()
	send(t, uploads, half)
	until(t, "a body is waited for", func() bool { _, _, _, owing, _ := c.States(); return owing == 1 })
	silent := dial()
	until(t, "one is silent", func() bool { fresh, _, _, _, _ := c.States(); return fresh == 1 })
	old, young := dial(), dial()
	say(t, old, plain)
	until(t, "the old one is idle", func() bool { _, _, idle, _, _ := c.States(); return idle == 1 })
	say(t, young, plain)
	until(t, "both are idle", func() bool { _, _, idle, _, _ := c.States(); return idle == 2 })
	var works []net.Conn
	for n, leaves := range []net.Conn{old, young, uploads, silent} {
		nc := dial()
		works = append(works, nc)
		send(t, nc, work)
		gone(t, leaves)
		until(t, "it is worked for", func() bool { _, _, _, _, working := c.States(); return working == n+1 && c.Stats().Open == 4 })
	}
	gone(t, dial())
	close(release)
	for _, nc := range works {
		r, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
	}
	if s, want := c.Stats(), (connlimit.Stats{Open: 4, Accepted: 8, Evicted: 4, Refused: 1}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	for _, nc := range works {
		_ = nc.Close()
	}
	until(t, "all are counted out", func() bool { return c.Stats().Open == 0 })
}

// TestNobodyIsRefusedWhileThereIsRoom: one address may hold all that there is, finished or
// not, and a body that waited long arrives.
func TestNobodyIsRefusedWhileThereIsRoom(t *testing.T) {
	const limit = 200
	c, dial := bounded(t, limit, nil)
	var all []net.Conn
	for range limit {
		nc := dial()
		send(t, nc, half)
		all = append(all, nc)
	}
	until(t, "all are waited for", func() bool { _, _, _, owing, _ := c.States(); return owing == limit })
	for _, nc := range all {
		say(t, nc, "llo")
	}
	if s := c.Stats(); s.Evicted != 0 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
}
