package faults_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestSecondServerIsRefused starts a second server on the same data: it ends with
// one line and a code, without a wait for the first, which goes on.
func TestSecondServerIsRefused(t *testing.T) {
	s := curttest.Start(t, curttest.Options{})
	links := s.MustCreate(t, 1)
	second, err := curttest.Launch(t, curttest.Options{Data: s.Data})
	if err == nil {
		t.Fatal("two servers run on one data folder")
	}
	if !strings.Contains(err.Error(), "ended with code") { // Launch was tired of it
		t.Fatal(err)
	}
	if second.Wait(t) == 0 {
		t.Error("the second server ended with code 0")
	}
	if text := strings.TrimSpace(second.Log()); text == "" || strings.Contains(text, "\n") {
		t.Errorf("the second server said %q, want one line", text)
	}
	for _, wrong := range s.Follow(t, links, 1) {
		t.Error("the first server was hurt:", wrong)
	}
}

// TestDrainFailsNoRequest ends the server under load, as a roll-out behind a load
// balancer does: /readyz says no before anything else happens, every client is
// told to leave by Connection: close, no request fails, and the exit is clean.
//
// Whoever is silent for a second is taken for gone, and whoever looks whether the server is ready has
// to come to it before the end of the delay: a machine that let nobody run for so long has another try.
func TestDrainFailsNoRequest(t *testing.T) {
	const silence = 500 * time.Millisecond // half of what the server waits for a next request
	idle := watchIdleness(t)
	for round := range rounds(2, 100) {
		delay := 300 * time.Millisecond
		if round == 0 {
			delay = 3 * time.Second
		}
		for try := 1; ; try++ {
			idle.forget()
			wrong := drain(t, delay, round == 0)
			if len(wrong) == 0 {
				break
			}
			if held := idle.longest(); held < silence || try == 10 {
				t.Fatalf("try %d, in which this machine let nobody run for %s: %q", try, held, wrong)
			}
			if round == 0 {
				delay = min(2*delay, time.Minute)
			}
		}
	}
}

// drain ends a server under load, and returns what failed.
func drain(t *testing.T, delay time.Duration, looked bool) (wrong []string) {
	t.Helper()
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_DRAIN_DELAY=" + delay.String(), "CURT_DRAIN_LIMIT=1m"}})
	links := s.MustCreate(t, 40)
	clicks := s.Click(t, curttest.ClickPlan{Clients: 16, Links: links})
	creates := s.Create(t, 8, prefix(t, 0))
	creates.AwaitMade(t, 40)
	refused := make(chan bool, 1)
	go func() { refused <- awaitUnready(t.Context(), s) }()
	code, took := s.Terminate(t)
	clicks.Wait()
	creates.Wait()
	if !<-refused && looked {
		wrong = append(wrong, "/readyz never answered 503 while the server still answered")
	}
	if code != 0 {
		t.Errorf("the drain ended with code %d after %s", code, took)
	}
	for _, bad := range clicks.Bad() {
		wrong = append(wrong, "a redirect failed: "+bad)
	}
	for _, bad := range creates.Bad() {
		wrong = append(wrong, "a create failed: "+bad)
	}
	only201(t, creates)
	t.Logf("drained in %s", took.Round(time.Millisecond))
	return wrong
}

// awaitUnready polls /readyz, on new connections as a load balancer does, until it
// says 503. It returns false when the listener is gone before.
func awaitUnready(ctx context.Context, s *curttest.Server) bool {
	for {
		status, err := curttest.Probe(ctx, s.Addr, "/readyz")
		if status == http.StatusServiceUnavailable {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// TestDrainDoesNotWaitForTheSilent ends a server with clients that never finish, or
// never begin, their request: it cuts them off at its drain limit.
func TestDrainDoesNotWaitForTheSilent(t *testing.T) {
	for try := 1; ; try++ {
		s := curttest.Start(t, curttest.Options{Env: []string{"CURT_DRAIN_LIMIT=1s"}})
		began := time.Now()
		for i := range 50 {
			c := s.MustDial(t)
			if err := c.Send([]string{"", "GET /abc", "GET /abc HTTP/1.1\r\nHost: x\r\n", "POST /api/v1/links HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"}[i%4]); err != nil {
				t.Fatal(err)
			}
		}
		code, took := s.Terminate(t)
		if code != 0 {
			t.Errorf("the drain ended with code %d after %s", code, took)
		}
		if strings.Contains(s.Log(), "drain limit reached, closed remaining connections") {
			return
		}
		if time.Since(began) < 8*time.Second || try == 5 { // a head has ten seconds: they may have gone by their own limits
			t.Fatalf("nobody was cut off in %s", took)
		}
	}
}

// TestSecondSignalEndsAtOnce: whoever does not want to wait for the drain sends
// SIGTERM again.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_DRAIN_DELAY=10m"}}) // longer than Terminate waits
	s.Signal(t)
	for ctx := t.Context(); ; {
		status, err := curttest.Probe(ctx, s.Addr, "/readyz")
		if err != nil {
			t.Fatalf("the server ended before its drain delay: %v", err)
		}
		if status == http.StatusServiceUnavailable {
			break
		}
	}
	s.Terminate(t)
}
