package redirect_test

import (
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/redirect"
	"curt/internal/redirect/redirecttest"
)

// minimal is a ResponseWriter that does nothing but keep its header map.
type minimal struct {
	header http.Header
	status int
}

func (w *minimal) Header() http.Header         { return w.header }
func (w *minimal) Write(b []byte) (int, error) { return len(b), nil }
func (w *minimal) WriteHeader(status int)      { w.status = status }
func (*minimal) FlushError() error             { return nil }

// sink takes clicks and forgets them.
type sink struct{ n int }

func (s *sink) Record(*clicks.Raw) bool { s.n++; return true }

func hit(tb testing.TB) func() {
	tb.Helper()
	s := cachetest.NewSource()
	s.Put(key("abcdefg"), link.Target{Destination: "https://example.com/a/path/of/usual/length?id=1234567", NoIndex: true})
	c, err := cache.New(cache.Config{}, s)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := redirect.NewResolver(redirect.ResolverConfig{Source: c, Spender: s})
	if err != nil {
		tb.Fatal(err)
	}
	h, err := redirect.NewHandler(redirect.HandlerConfig{Resolver: r, Recorder: &sink{}, Pages: redirecttest.Pages{}})
	if err != nil {
		tb.Fatal(err)
	}
	request := &http.Request{
		Method: "GET", Host: "links.example", RemoteAddr: "203.0.113.7:51234", URL: &url.URL{Path: "/abcdefg"},
		Header: http.Header{
			"Accept": {browser}, "Accept-Language": {"de-DE,de;q=0.9,en;q=0.8"}, "Referer": {"https://social.example/post/1"},
			"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"},
		},
	}
	w := &minimal{header: http.Header{}}
	return func() {
		clear(w.header)
		h.ServeHTTP(w, request)
		if w.status != 302 {
			tb.Fatal(w.status)
		}
	}
}

func TestAHitAllocatesItsLocationOnly(t *testing.T) {
	if got := testing.AllocsPerRun(1000, hit(t)); got > 1 {
		t.Errorf("%v allocations a hit, want 1: the []string of Location", got)
	}
}

// cpu is the processor time of this process: on a machine that is shared, the clock
// on the wall measures the neighbours.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkHandlerHit(b *testing.B) {
	f := hit(b)
	b.ReportAllocs()
	began := cpu(b)
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(cpu(b)-began)/float64(b.N), "cpu-ns/op")
}
