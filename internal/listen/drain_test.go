package listen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"curt/internal/analytics"
	"curt/internal/link"
	"curt/internal/telemetry"
)

// draining serves a handler, and returns its address.
func draining(t *testing.T, cfg Config, h http.Handler) (*Traffic, string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Sockets, cfg.MaxConnections, cfg.Metrics, cfg.Log = &Sockets{public: newGate(l)}, 10, telemetry.New("test"), slog.New(slog.DiscardHandler)
	cfg.Streams = func(*http.Request) bool { return false }
	s := New(cfg)
	s.ServeNetHTTP(t.Context(), h)
	ended := make(chan error, 1)
	s.Serve(ended)
	t.Cleanup(func() {
		_ = s.fronts[0].server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

func TestDrainingServerLetsAKeepAliveClientGo(t *testing.T) {
	s, addr := draining(t, Config{DrainLimit: 10 * time.Second},
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	answers := bufio.NewReader(conn)
	ask := func() (closing bool) {
		if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
			t.Fatal(r.Status, err)
		}
		if err := r.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return r.Close
	}
	if ask() {
		t.Fatal("closed before draining")
	}
	s.draining.Store(true)
	if !ask() { // before drain, which does not wait for a client that is slow to ask
		t.Error("a draining server keeps its client")
	}
	s.Drain(t.Context()) // the only connection is gone, so this does not take the second of lastRequest and never the limit
}

func TestDrainWithoutConnectionsTakesNoTime(t *testing.T) {
	until(t, "a drain takes less time than a client is given", func() bool { // the first may meet a busy machine
		s, _ := draining(t, Config{DrainLimit: time.Minute}, http.NotFoundHandler())
		start := time.Now()
		s.Drain(t.Context())
		return time.Since(start) < lastRequest
	})
}

func TestDrainCutsOffAtTheLimit(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	s, addr := draining(t, Config{DrainLimit: 200 * time.Millisecond},
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(started); <-release }))
	defer close(release)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-started
	s.Drain(t.Context()) // returns although the request never ends; the test's own time limit is the proof
}

func TestDrainEndsStreams(t *testing.T) {
	live := analytics.NewLive(nil)
	s, addr := draining(t, Config{DrainLimit: time.Minute}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		watch, err := live.Watch(link.Key{}, "")
		if err != nil {
			t.Error(err)
			return
		}
		defer watch.Close()
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-watch.Ended()
	}))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.BeforeDrain(live.Close)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	s.Drain(t.Context()) // what is open at its limit is cut off
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Errorf("the stream was cut off: %v", err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
}
