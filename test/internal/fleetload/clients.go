// Package fleetload is clients of a fleet whose servers are replaced one after the other: they create links and
// follow them, and note each answer that a client has no reason to expect.
//
// A client sends a request once more if its connection was refused or reset, as browsers and libraries do, and
// never a third time.
package fleetload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// pause is that of each client between two requests.
const pause = 20 * time.Millisecond

// Config says who the clients are and where they go.
type Config struct {
	Client *http.Client // follows no redirects
	// API and Links are the addresses for creates and for visits, such as https://go.example.com. Requests
	// go to them in turn, and for the second time to the next one.
	API, Links []string
	// Again reports whether an answer is a reason to send a request once more; nil = none is.
	Again func(method string, status int) bool

	Creators, Visitors int
	First              int  // links that are created before, at least one; all visitors follow them
	Newest             bool // one visit in five is of the newest link
}

// Clients are at work until they are stopped. All methods may be called by many goroutines at once.
type Clients struct {
	cfg  Config
	stop func()

	sent, answered, retried atomic.Int64

	mu     sync.Mutex
	links  []curttest.Link // guarded by mu: that were acknowledged
	failed []string        // guarded by mu
}

// Start creates the first links and starts the clients, which end with the test.
func Start(t testing.TB, c Config) *Clients {
	t.Helper()
	l := &Clients{cfg: c}
	for i := range c.First {
		l.create(t.Context(), i, fmt.Sprintf("first-%d", i))
	}
	if failed := l.Failed(); len(failed) > 0 {
		t.Fatalf("before the load: %s", failed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	l.stop = func() { cancel(); running.Wait() }
	t.Cleanup(l.stop)
	for i := range c.Creators + c.Visitors {
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if i < c.Creators {
					l.create(t.Context(), i+n, fmt.Sprintf("%d-%d", i, n))
				} else {
					l.Visit(t.Context(), n)
				}
				time.Sleep(pause)
			}
		})
	}
	return l
}

// Stop lets each client finish its request and waits for them.
func (l *Clients) Stop() { l.stop() }

// Links are those that were acknowledged, in this order.
func (l *Clients) Links() []curttest.Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.links)
}

// Failed are the failures so far, each with its time.
func (l *Clients) Failed() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.failed)
}

// Sent is how many visits were sent, those that were sent again among them.
func (l *Clients) Sent() int64 { return l.sent.Load() }

// Answered is how many visits were answered as they should be.
func (l *Clients) Answered() int64 { return l.answered.Load() }

// Retried is how many requests were sent once more.
func (l *Clients) Retried() int64 { return l.retried.Load() }

// Progress waits until clients were answered so many times more.
func (l *Clients) Progress(t testing.TB, visits int64, creates int) {
	t.Helper()
	v, c := l.Answered()+visits, len(l.Links())+creates
	for end := time.Now().Add(3 * time.Minute); l.Answered() < v || len(l.Links()) < c; time.Sleep(pause / 2) {
		if time.Now().After(end) {
			t.Fatalf("three minutes passed without %d visits and %d creates: %.10q", visits, creates, l.Failed())
		}
	}
}

// Report stops the clients and reports what failed as errors of the test.
func (l *Clients) Report(t testing.TB) {
	t.Helper()
	l.Stop()
	for _, text := range l.Failed() {
		t.Error(text)
	}
	t.Logf("%d visits, %d links, %d requests retried", l.Answered(), len(l.Links()), l.Retried())
}

func (l *Clients) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, time.Now().UTC().Format(time.StampMilli)+" "+err.Error())
}

// create creates a link and notes it, or the failure.
func (l *Clients) create(ctx context.Context, n int, key string) {
	to := "https://example.com/" + key
	a, err := l.do(ctx, http.MethodPost, l.cfg.API, n, "/api/v1/links", `{"long_url":"`+to+`","dedupe":false}`, http.Header{
		"Authorization": {"Bearer " + curttest.Key}, "Content-Type": {"application/json"}, "Idempotency-Key": {key},
	})
	var made curttest.Link
	if err == nil && a.status == http.StatusCreated {
		err = json.Unmarshal(a.body, &made)
	}
	if err != nil || a.status != http.StatusCreated || made.LongURL != to {
		l.fail(fmt.Errorf("create: %d %.200s: %w", a.status, a.body, cmp.Or(err, errWrong)))
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.links = append(l.links, made)
}

// Visit follows the nth of the first links, or the newest, and notes a failure.
func (l *Clients) Visit(ctx context.Context, n int) {
	all := l.Links()
	to := all[n%l.cfg.First]
	if l.cfg.Newest && n%5 == 0 {
		to = all[len(all)-1]
	}
	if err := l.follow(ctx, l.cfg.Links, n, to); err != nil {
		l.fail(err)
	}
}

// Follow follows a link at one address.
func (l *Clients) Follow(ctx context.Context, address string, to curttest.Link) error {
	return l.follow(ctx, []string{address}, 0, to)
}

// errWrong is an answer that is not the link's.
var errWrong = errors.New("wrong answer")

func (l *Clients) follow(ctx context.Context, addresses []string, n int, to curttest.Link) error {
	a, err := l.do(ctx, http.MethodGet, addresses, n, "/"+to.Code, "", nil)
	if err != nil || a.status != http.StatusFound || a.location != to.LongURL {
		return fmt.Errorf("visit of %s: %d to %q, %.100s: %w", to.Code, a.status, a.location, a.body, cmp.Or(err, errWrong))
	}
	l.answered.Add(1)
	return nil
}

// answer is what a client gets.
type answer struct {
	status   int
	location string
	body     []byte
}

// do sends a request to the nth address, and once more to the next one.
func (l *Clients) do(ctx context.Context, method string, addresses []string, n int, path, body string, header http.Header) (a answer, err error) {
	for i := range 2 {
		var r *http.Response
		if r, err = l.send(ctx, method, addresses[(n+i)%len(addresses)]+path, body, header); err == nil { //nolint:bodyclose // read closes it
			a, err = read(r)
			if err != nil || l.cfg.Again == nil || !l.cfg.Again(method, a.status) {
				return a, err
			}
		}
		if i == 0 {
			l.retried.Add(1)
		}
	}
	return a, err
}

func (l *Clients) send(ctx context.Context, method, url, body string, header http.Header) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if header != nil {
		q.Header = header.Clone()
	}
	if method == http.MethodGet {
		l.sent.Add(1)
	}
	return l.cfg.Client.Do(q)
}

func read(r *http.Response) (answer, error) {
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	return answer{r.StatusCode, r.Header.Get("Location"), text}, err
}
