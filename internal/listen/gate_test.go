package listen

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// TestAGateTakesWhoWaits: whoever connected before the gate was shut is accepted,
// although nobody accepted until then.
func TestAGateTakesWhoWaits(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const clients = 50
	for range clients {
		nc, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = nc.Close() }()
	}
	g := newGate(l)
	shut := make(chan struct{})
	go func() { g.shut(t.Context()); close(shut) }()
	accepted := 0
	for {
		nc, err := g.Accept()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = nc.Close() }()
		accepted++
	}
	<-shut
	if accepted != clients {
		t.Errorf("%d of %d were accepted", accepted, clients)
	}
	if err := g.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// TestAGateShutsWithoutAnybody: one that nobody accepts from is closed with ctx.
func TestAGateShutsWithoutAnybody(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(l)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	g.shut(over)
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("not closed: %v", err)
	}
}

// until waits for what other goroutines are about to do.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}
