package queued_test

import (
	"encoding/json"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// mostWait is how long any create may wait for Kafka, with what a busy machine adds: five seconds are the bound of the server.
const mostWait = time.Minute

// TestCreatesDoNotWaitForABrokerThatDied: Kafka dies, or stands still, under a running server. Every way to create a link is answered
// soon, then at once; the server says why, and takes links again when Kafka does. What was sent with an idempotency key is one link.
func TestCreatesDoNotWaitForABrokerThatDied(t *testing.T) {
	testkit.Faults(t)
	for name, fault := range map[string]struct{ begin, end func(*testing.T, *plant) }{
		"killed": {
			func(t *testing.T, p *plant) { p.kafka.Brokers[0].Kill(t) },
			func(t *testing.T, p *plant) { p.kafka.Brokers[0].Again(t) },
		},
		"frozen": {
			func(t *testing.T, p *plant) { p.kafka.Brokers[0].Signal(t, syscall.SIGSTOP) },
			func(t *testing.T, p *plant) { p.kafka.Brokers[0].Signal(t, syscall.SIGCONT) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := build(t, 1, "sqlite", "CURT_WRITES_RATE=5000")
			s := p.start(t, "all", t.TempDir())
			if a := call(t, s, "POST", "/api/v1/links", `{"long_url":"https://example.com/before"}`); a.Status != 202 {
				t.Fatalf("before: %d %q", a.Status, a.Body)
			}
			fault.begin(t, p)
			allAtOnce(t, s)
			soon(t, "/readyz names the queue", func() bool { return queueState(t, s) != "ok" })
			// Known to be away: nothing is sent, so that nothing may be there.
			for range 20 {
				if a := create(t, s, "away"); a.Status != 503 || a.Link.Type != "/problems/unavailable" {
					t.Fatalf("while the queue is known to be away: %d %q", a.Status, a.Body)
				}
			}
			refusesForm(t, s)
			fault.end(t, p)
			soon(t, "creates are accepted again", func() bool { return create(t, s, "again").Status == 202 })
			soon(t, "/readyz says that the queue is there", func() bool { return queueState(t, s) == "ok" })
			soon(t, "the form is accepted", func() bool { return form(t, s).Status == 201 })
			// Its record is as old as its first try.
			soon(t, "the same create is accepted", func() bool {
				a := create(t, s, "keyed", `Idempotency-Key: "outage"`)
				return a.Status == 202 || a.Status == 201
			})
			drained(t, s)
			n := 0
			for _, l := range s.AllLinks(t) {
				if l.LongURL == "https://example.com/keyed" {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%d links of one idempotency key", n)
			}
		})
	}
}

func create(t *testing.T, s *curttest.Server, name string, headers ...string) answer {
	t.Helper()
	return call(t, s, "POST", "/api/v1/links", `{"long_url":"https://example.com/`+name+`"}`, headers...)
}

// allAtOnce creates links in every way while nobody acknowledges them: each answer is 503, says when to try again, and comes soon.
func allAtOnce(t *testing.T, s *curttest.Server) {
	t.Helper()
	var running sync.WaitGroup
	defer running.Wait()
	for what, request := range map[string]func() answer{
		"single":          func() answer { return create(t, s, "single") },
		"idempotency key": func() answer { return create(t, s, "keyed", `Idempotency-Key: "outage"`) },
		"Prefer: wait":    func() answer { return create(t, s, "waits", "Prefer: wait") },
		"bulk": func() answer {
			return call(t, s, "POST", "/api/v1/links/bulk", `{"links":[{"long_url":"https://example.com/b1"},{"long_url":"https://example.com/b2"}]}`)
		},
	} {
		running.Go(func() {
			began := time.Now()
			a := request()
			took := time.Since(began)
			status, kind := a.Status, a.Link.Type
			if what == "bulk" && status < 300 { // each link has its own answer
				status, kind = 503, "/problems/outcome-unknown"
				if !strings.Contains(string(a.Body), "503") {
					status = a.Status
				}
			} else if after, _ := a.Get("Retry-After"); after == "" {
				t.Errorf("%s: no Retry-After", what)
			}
			if status != 503 || kind != "/problems/outcome-unknown" && kind != "/problems/unavailable" || took > mostWait {
				t.Errorf("%s: %d %q after %s", what, a.Status, a.Body, took)
			}
		})
	}
	running.Go(func() { refusesForm(t, s) })
}

// form sends the form of the page at / as a browser does.
func form(t *testing.T, s *curttest.Server) curttest.Answer {
	t.Helper()
	c := s.MustDial(t)
	defer c.Close()
	a, err := c.Do("POST", "/", []string{"Content-Type: application/x-www-form-urlencoded", "Origin: http://" + s.Addr}, "url=https%3A%2F%2Fexample.com%2Ftyped%3Fa%3D1%26b&expiry=86400")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// refusesForm: the answer is the form with what was typed, and says when to try again.
func refusesForm(t *testing.T, s *curttest.Server) {
	t.Helper()
	began := time.Now()
	a := form(t, s)
	after, _ := a.Get("Retry-After")
	page := string(a.Body)
	if a.Status != 503 || after == "" || time.Since(began) > mostWait || !strings.Contains(page, "Temporarily unavailable. Try again in a moment.") ||
		!strings.Contains(page, `value="https://example.com/typed?a=1&amp;b"`) || !strings.Contains(page, `value="86400" selected`) {
		t.Errorf("the form: %d, Retry-After %q, after %s:\n%s", a.Status, after, time.Since(began), page)
	}
}

// queueState returns what /readyz of the admin listener says of the queue.
func queueState(t *testing.T, s *curttest.Server) string {
	t.Helper()
	c, err := curttest.Dial(t.Context(), s.Admin)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Do("GET", "/readyz", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	var ready struct {
		Checks map[string]struct{ Status string }
	}
	if err := json.Unmarshal(a.Body, &ready); err != nil || ready.Checks["queue"].Status == "" {
		t.Fatalf("/readyz: %q: %v", a.Body, err)
	}
	return ready.Checks["queue"].Status
}
