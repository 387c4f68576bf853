package queued_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// makers create links at a server until they are stopped, and keep what was answered 202.
type makers struct {
	mu    sync.Mutex
	codes map[string]string // guarded by mu: code of each 202, by the destination, which is unique
	other map[int]int       // guarded by mu: other answers by status
	stop  context.CancelFunc
	wait  sync.WaitGroup
}

func begin(t *testing.T, s *curttest.Server, n int, name string) *makers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	m := &makers{codes: map[string]string{}, other: map[int]int{}, stop: cancel}
	for i := range n {
		m.wait.Go(func() { m.run(ctx, t, s, fmt.Sprintf("https://example.com/%s/%d", name, i)) })
	}
	t.Cleanup(func() { cancel(); m.wait.Wait() })
	return m
}

func (m *makers) run(ctx context.Context, t *testing.T, s *curttest.Server, prefix string) {
	var c *curttest.Conn
	pace := time.NewTicker(5 * time.Millisecond) // a server without a writer accepts 64 MiB
	defer pace.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		<-pace.C
		var err error
		if c == nil {
			if c, err = curttest.Dial(context.WithoutCancel(ctx), s.Addr); err != nil {
				t.Errorf("dial: %v", err)
				return
			}
		}
		url := fmt.Sprintf("%s/%d", prefix, i)
		a, err := c.Do("POST", "/api/v1/links", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, `{"long_url":"`+url+`"}`)
		if err != nil { // a connection that ended: what was sent may have been accepted
			c.Close()
			c = nil
			continue
		}
		var made struct {
			Code string `json:"short_code"`
		}
		m.mu.Lock()
		if a.Status == 202 && json.Unmarshal(a.Body, &made) == nil && made.Code != "" {
			m.codes[url] = made.Code
		} else {
			m.other[a.Status]++
		}
		m.mu.Unlock()
	}
	if c != nil {
		c.Close()
	}
}

func (m *makers) made() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.codes)
}

// end stops the makers and returns what was answered 202.
func (m *makers) end() map[string]string {
	m.stop()
	m.wait.Wait()
	return m.codes
}

// compare looks whether every 202 is a link, once, as the store has it.
func compare(t *testing.T, s *curttest.Server, accepted map[string]string) {
	t.Helper()
	stored, ids := map[string]string{}, 0
	for _, l := range s.AllLinks(t) {
		if code, twice := stored[l.LongURL]; twice {
			t.Errorf("%s has two links, %s and %s", l.LongURL, code, l.Code)
		}
		stored[l.LongURL] = l.Code
		ids++
	}
	lost := 0
	for url, code := range accepted {
		if stored[url] != code {
			if lost++; lost <= 5 {
				t.Errorf("%s was answered 202 with the code %s; the store has %q", url, code, stored[url])
			}
		}
	}
	t.Logf("%d links were answered 202, %d are stored, %d lost", len(accepted), ids, lost)
}

// drained waits until nothing is pending.
func drained(t *testing.T, s *curttest.Server) {
	t.Helper()
	const still = 3 * time.Minute // while none is written; writers join their group one after the other
	last := metric(t, s, "curt_pending_links")
	for deadline := time.Now().Add(still); last > 0; time.Sleep(50 * time.Millisecond) {
		pending := metric(t, s, "curt_pending_links")
		if pending < last {
			deadline = time.Now().Add(still)
		}
		if last = pending; time.Now().After(deadline) {
			t.Fatalf("%v links are pending, and none was written for three minutes", pending)
		}
	}
}

// TestTheWriterIsKilledFiftyTimes: kill -9 at any moment, between a write and the commit of its offset too.
func TestTheWriterIsKilledFiftyTimes(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 1, database(t), "CURT_WRITES_RATE=5000")
	api := p.start(t, "redirect,api", t.TempDir())
	m := begin(t, api, 4, "killed")
	data := t.TempDir()
	killed := 0
	for range 50 {
		writer := p.start(t, "writer", data)
		upTo := float64(rand.IntN(150))
		soon(t, "the writer writes", func() bool { return metric(t, writer, "curt_writer_links_total") >= upTo })
		writer.Kill()
		killed++
	}
	accepted := m.end()
	delete(m.other, 503) // while no writer lives, the memory of pending links fills
	if len(m.other) > 0 {
		t.Errorf("answers other than 202: %v", m.other)
	}
	p.start(t, "writer", data)
	drained(t, api)
	t.Logf("the writer was killed %d times", killed)
	compare(t, api, accepted)
}

// TestABrokerIsKilledWhileLinksAreCreated: of three brokers one after the other dies, each of which leads partitions.
func TestABrokerIsKilledWhileLinksAreCreated(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 3, database(t), "CURT_WRITES_RATE=5000")
	api := p.start(t, "redirect,api", t.TempDir())
	p.start(t, "writer", t.TempDir())
	m := begin(t, api, 4, "broker")
	more := func(what string) {
		t.Helper()
		want := m.made() + 200
		soon(t, what, func() bool { return m.made() >= want })
	}
	more("links are accepted")
	for i, b := range p.kafka.Brokers {
		b.Kill(t)
		more(fmt.Sprintf("links are accepted without broker %d", i+1))
		b.Again(t)
		more(fmt.Sprintf("links are accepted with broker %d again", i+1))
	}
	accepted := m.end()
	t.Logf("answers other than 202: %v", m.other)
	drained(t, api)
	compare(t, api, accepted)
}

// TestTheServerThatAcceptedRestarts: what it accepted and forgot is a link as soon as it is written, and unknown until then, never gone.
func TestTheServerThatAcceptedRestarts(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 1, "sqlite")
	data := t.TempDir()
	api := p.start(t, "all", data, "CURT_WRITES_RATE=1", "CURT_UNKNOWN_LIMIT=off")
	codes := map[string]string{}
	for i := range 20 {
		url := fmt.Sprintf("https://example.com/restart/%d", i)
		a := accepted(t, api, curttest.Key, "/api/v1/links", `{"long_url":"`+url+`"}`)
		if a.Status != 202 {
			t.Fatalf("create: %d %q", a.Status, a.Body)
		}
		codes[url] = a.Link.Code
	}
	api.Kill()
	api = p.start(t, "all", data, "CURT_UNKNOWN_LIMIT=off")
	for url, code := range codes {
		soon(t, "the link is written", func() bool {
			status, to, kept := visit(t, api, code)
			if status != 404 && status != 302 || status == 404 && kept != "no-store" || status == 302 && to != url {
				t.Errorf("%s: %d %s, Cache-Control %s", code, status, to, kept)
			}
			return status == 302
		})
	}
	compare(t, api, codes)
}
