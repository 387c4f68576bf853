package server

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
	"curt/internal/config"
	"curt/internal/link"
)

// draining starts a server with nothing but a handler, and returns its address.
func draining(t *testing.T, cfg config.Config, h http.Handler) (*Server, string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{config: cfg, log: slog.New(slog.DiscardHandler), live: analytics.NewLive(nil)}
	s.listener = newGate(l)
	public := httpServer(s.health.closeWhileDraining(h), s.log, nil)
	public.ConnState = s.connections.track
	s.fronts = []front{{server: public, listener: s.listener}}
	ended := make(chan error, 1)
	go func() { ended <- serve(public, s.listener) }()
	t.Cleanup(func() {
		_ = public.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

func TestDrainingServerLetsAKeepAliveClientGo(t *testing.T) {
	s, addr := draining(t, config.Config{DrainLimit: 10 * time.Second},
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
	s.health.draining.Store(true)
	if !ask() { // before drain, which does not wait for a client that is slow to ask
		t.Error("a draining server keeps its client")
	}
	s.drain(t.Context()) // the only connection is gone, so this does not take the second of lastRequest and never the limit
}

func TestDrainWithoutConnectionsTakesNoTime(t *testing.T) {
	until(t, "a drain takes less time than a client is given", func() bool { // the first may meet a busy machine
		s, _ := draining(t, config.Config{DrainLimit: time.Minute}, http.NotFoundHandler())
		start := time.Now()
		s.drain(t.Context())
		return time.Since(start) < lastRequest
	})
}

func TestDrainCutsOffAtTheLimit(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	s, addr := draining(t, config.Config{DrainLimit: 200 * time.Millisecond},
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
	s.drain(t.Context()) // returns although the request never ends; the test's own time limit is the proof
}

func TestDrainEndsStreams(t *testing.T) {
	live := analytics.NewLive(nil)
	s, addr := draining(t, config.Config{DrainLimit: time.Minute}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
	s.live = live
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	s.drain(t.Context()) // what is open at its limit is cut off
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Errorf("the stream was cut off: %v", err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
}
