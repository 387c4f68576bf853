package connlimit_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/clientaddr"
	"curt/internal/connlimit"
)

// upload is a client that sends pieces, each after a pause, and the connection that it sends
// them on: a read ends when its deadline does.
type upload struct {
	http.ResponseWriter
	piece int
	pause time.Duration
	left  int

	mu       sync.Mutex
	deadline time.Time     // guarded by mu
	moved    chan struct{} // guarded by mu; closed when the deadline was set
}

func (u *upload) SetReadDeadline(t time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.deadline = t
	close(u.moved)
	u.moved = make(chan struct{})
	return nil
}

func (u *upload) Read(p []byte) (int, error) {
	if u.left == 0 {
		return 0, io.EOF
	}
	comes := time.After(u.pause)
	for {
		u.mu.Lock()
		deadline, moved := u.deadline, u.moved
		u.mu.Unlock()
		var late <-chan time.Time
		if !deadline.IsZero() {
			late = time.After(time.Until(deadline))
		}
		select {
		case <-comes:
			n := min(u.piece, u.left, len(p))
			u.left -= n
			return n, nil
		case <-late:
			return 0, os.ErrDeadlineExceeded
		case <-moved:
		}
	}
}

func (*upload) Close() error { return nil }

// TestABodyMustKeepUp: a body arrives that keeps up the rate, however long it takes and
// however long the server looks at each piece; one that is slower, or silent, ends.
func TestABodyMustKeepUp(t *testing.T) {
	for name, c := range map[string]struct {
		piece   int
		pause   time.Duration
		size    int
		looks   time.Duration // how long the handler takes for each piece
		arrives bool
		within  time.Duration
	}{
		"at once":                 {1 << 20, 0, 1 << 20, 0, true, time.Second},
		"slow and honest":         {5 << 10, time.Second, 1 << 20, 0, true, 4 * time.Minute},
		"in bursts":               {64 << 10, 9 * time.Second, 1 << 20, 0, true, 5 * time.Minute},
		"a server that is slow":   {4 << 10, time.Second, 64 << 10, 20 * time.Second, true, 10 * time.Minute},
		"silent":                  {0, time.Hour, 60_000, 0, false, 11 * time.Second},
		"a byte each second":      {1, time.Second, 60_000, 0, false, 12 * time.Second},
		"below the rate":          {3 << 10, time.Second, 16 << 20, 0, false, time.Minute},
		"nothing can be saved up": {1 << 20, 70 * time.Second, 4 << 20, 0, false, 71 * time.Second},
	} {
		for _, major := range []int{1, 2} {
			synctest.Test(t, func(t *testing.T) {
				u := &upload{ResponseWriter: httptest.NewRecorder(), piece: c.piece, pause: c.pause, left: c.size, moved: make(chan struct{})}
				began := time.Now()
				g := connlimit.NewGate(10, clientaddr.Rule{}, func() int64 { return time.Since(began).Microseconds() }, func() {})
				p := g.Progress(1)
				r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(strings.NewReader("")))
				r.Body, r.ContentLength, r.ProtoMajor = u, int64(c.size), major
				var err error
				g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					b := make([]byte, 64<<10)
					for n := 0; err == nil; {
						n, err = r.Body.Read(b)
						if n > 0 && c.looks > 0 {
							time.Sleep(c.looks)
						}
					}
				})).ServeHTTP(u, r.WithContext(connlimit.With(r.Context(), p)))
				if arrived := errors.Is(err, io.EOF); arrived != c.arrives {
					t.Errorf("%s, HTTP/%d: arrived %v after %s: %v", name, major, arrived, time.Since(began), err)
				}
				if took := time.Since(began); took > c.within {
					t.Errorf("%s, HTTP/%d: %s", name, major, took)
				}
			})
		}
	}
}

// TestWhoIsToAct: the client, for as long as its body or our answer waits for it, and the server
// otherwise.
func TestWhoIsToAct(t *testing.T) {
	g := connlimit.NewGate(10, clientaddr.Rule{}, func() int64 { return 1 }, func() {})
	p := g.Progress(1)
	owes := func(when string, want bool) {
		t.Helper()
		if _, _, got := p.Owes(); got != want {
			t.Errorf("%s: the client owes %v, want %v", when, got, want)
		}
	}
	owes("before a request", true)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x"))
	g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		owes("at work", false)
		p.Reads()
		owes("reading the body", true)
		p.HasRead()
		_, _ = io.Copy(io.Discard, r.Body)
		p.Reads()
		owes("net/http listens whether the client leaves", false)
		p.HasRead()
		p.Writes()
		owes("writing", true)
		p.Resume()
		owes("at work again", false)
	})).ServeHTTP(httptest.NewRecorder(), r.WithContext(connlimit.With(r.Context(), p)))
	owes("what is left of the answer is sent", true)
}

// TestCrowd: requests that are not over are counted, those of a connection of HTTP/2 one by
// one, and whoever closes some is called.
func TestCrowd(t *testing.T) {
	called := 0
	g := connlimit.NewGate(10, clientaddr.Rule{}, func() int64 { return 1 }, func() { called++ })
	for n := range 1100 {
		p := g.Progress(1)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		serve := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		serve.ServeHTTP(httptest.NewRecorder(), r.WithContext(connlimit.With(r.Context(), p)))
		if n%11 == 0 {
			p.Over()
		}
	}
	if got := g.Excess(); got != 0 || called != 0 {
		t.Errorf("%d too many after 1000, told %d times", got, called)
	}
	p := g.Progress(1)
	var within func(left int)
	within = func(left int) {
		if left == 0 {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.ProtoMajor = 2
		g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { within(left - 1) })).
			ServeHTTP(httptest.NewRecorder(), r.WithContext(connlimit.With(r.Context(), p)))
	}
	within(5)
	if called != 5 || g.Excess() != 0 {
		t.Errorf("told %d times of 5 too many, %d are left", called, g.Excess())
	}
}
