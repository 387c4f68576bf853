package redirect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"curt/internal/cache/cachetest"
	"curt/internal/clicks"
	"curt/internal/clientaddr"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
)

// refuser is a ratelimit.Store that allows nothing.
type refuser struct{}

func (refuser) Spend(context.Context, time.Time, []ratelimit.Charge) ([]ratelimit.Verdict, error) {
	return []ratelimit.Verdict{{Limit: 1, RetryAfter: 1500 * time.Millisecond}}, nil
}

// metered is a handler that lets each network ask for n unknown codes an hour.
func metered(t *testing.T, n int) (*redirect.Handler, *redirect.Budget, *recorder) {
	t.Helper()
	s, rec := cachetest.NewSource(), &recorder{}
	s.Put(key("live"), link.Target{Destination: dest})
	s.Put(key("dead"), link.Target{Status: link.Deleted})
	s.Put(key("soon"), link.Target{Destination: dest, Starts: time.Now().Add(time.Hour).UnixMilli()})
	b := redirect.NewBudget(ratelimit.NewMemory(), ratelimit.Per(n, time.Hour))
	return newHandler(t, redirect.HandlerConfig{
		Unknown: b, Clients: clientaddr.New(netip.MustParsePrefix("192.0.2.0/24")), // httptest's peer
	}, s, rec), b, rec
}

func TestWhoTriesCodesIsToldToWait(t *testing.T) {
	h, b, rec := metered(t, 3)
	from := func(addr string) map[string]string { return map[string]string{"X-Forwarded-For": addr} }
	for i := range 10 {
		want := http.StatusNotFound
		if i >= 3 {
			want = http.StatusTooManyRequests
		}
		got := serve(h, "GET", fmt.Sprintf("http://x/guess%d", i), from("2001:db8::1"))
		if got.Code != want {
			t.Errorf("guess %d: %d, want %d", i, got.Code, want)
		}
		if retry := got.Header().Get("Retry-After"); (retry == "1200") != (want == http.StatusTooManyRequests) {
			t.Errorf("guess %d: Retry-After %q", i, retry)
		}
	}
	for path, want := range map[string]int{"/live": 302, "/dead": 410, "/soon": 429, "/favicon.ico": 404, "/": 404, "/a/b": 404} {
		for range 5 {
			if got := serve(h, "GET", "http://x"+path, from("2001:db8::1")); got.Code != want {
				t.Errorf("%s: %d, want %d", path, got.Code, want)
			}
		}
	}
	if got := serve(h, "GET", "http://x/guess", from("2001:db8::ffff:1")); got.Code != http.StatusTooManyRequests {
		t.Errorf("a neighbour in the /64: %d", got.Code)
	}
	for _, other := range []string{"2001:db8:0:1::1", "203.0.113.7"} {
		if got := serve(h, "HEAD", "http://x/guess", from(other)); got.Code != http.StatusNotFound {
			t.Errorf("another network: %d", got.Code)
		}
	}
	if b.Refused() != 13 {
		t.Errorf("%d refused, want 13", b.Refused())
	}
	orphans := 0
	for _, c := range rec.all() {
		if c.Outcome == clicks.Orphan && len(c.Code) > 0 && string(c.Code) != "favicon.ico" {
			orphans++
		}
	}
	if orphans != 5 {
		t.Errorf("%d guesses were counted as clicks, want the 5 that were answered 404", orphans)
	}
}

// down is a ratelimit.Store that cannot be asked.
type down struct{}

func (down) Spend(context.Context, time.Time, []ratelimit.Charge) ([]ratelimit.Verdict, error) {
	return nil, errAway
}

func TestABudgetThatCannotBeAskedRefusesNobody(t *testing.T) {
	h := newHandler(t, redirect.HandlerConfig{Unknown: redirect.NewBudget(down{}, ratelimit.Per(1, time.Hour))}, cachetest.NewSource(), &recorder{})
	for range 5 {
		if got := serve(h, "GET", "http://x/guess", nil); got.Code != http.StatusNotFound {
			t.Errorf("got %d", got.Code)
		}
	}
}
