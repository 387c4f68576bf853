package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"curt/internal/clicks/capture"
	"curt/internal/lane/lanetest"
)

// lenientThen is how many of the heads that RFC 9112 forbids fasthttp answered when
// docs/decisions/0056 was taken. The lane answers none. When the library becomes as strict, the
// decision is to be looked at again.
const lenientThen = 11

// TestFasthttpIsLenient counts the heads of the lane's corpus that the library takes for requests.
func TestFasthttpIsLenient(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	f := &frontend{table: map[string]prepared{"live": {destination: "https://example.com"}}, ring: capture.NewRing(capture.RingConfig{})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	done := make(chan error, 1)
	go func() { done <- f.fasthttp(ctx, listener) }()
	defer func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	lenient := 0
	for name, head := range lanetest.Refused() {
		if status, err := ask(t, addr, head); err != nil {
			t.Fatalf("%s: %v", name, err)
		} else if status != 0 && status != http.StatusBadRequest {
			t.Logf("%s: %d", name, status)
			lenient++
		}
	}
	t.Logf("%d of %d are answered", lenient, len(lanetest.Refused()))
	if lenient < lenientThen {
		t.Errorf("%d heads are answered, want %d or more: the library became stricter, so decide anew", lenient, lenientThen)
	}
}

// ask returns the status of the answer, 0 = closed without one.
func ask(t *testing.T, addr, head string) (status int, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, fmt.Errorf("dial: %w", err)
	}
	defer c.Close() //nolint:errcheck // a test's
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, fmt.Errorf("deadline: %w", err)
	}
	if _, err := io.WriteString(c, head); err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		if err := tcp.CloseWrite(); err != nil {
			return 0, fmt.Errorf("end: %w", err)
		}
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, nil // closed, or no answer of HTTP/1.1
	}
	return res.StatusCode, res.Body.Close()
}
