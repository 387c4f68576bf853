package lane_test

import (
	"strings"
	"testing"
	"time"

	"curt/internal/ratelimit"
	"curt/internal/redirect"
)

// limiting bounds redirects of each network and each link within an hour.
func limiting(network, link int) option {
	return func(s *setup) {
		s.limits = &redirect.Limits{
			Network: ratelimit.NewThrottle(ratelimit.Per(network, time.Hour), nil, time.Now()),
			Link:    ratelimit.NewThrottle(ratelimit.Per(link, time.Hour), nil, time.Now()),
			Key:     ratelimit.NewHashKey([]byte("sixteen bytes...")),
		}
		trusting("127.0.0.0/8")(s)
	}
}

// Both ways refuse the same redirects, whether the answer is prepared or not, and no other answer.
func TestTheLaneLimitsRedirectsAsNetHTTPDoes(t *testing.T) {
	on, off := start(t, true, limiting(6, 8)), start(t, false, limiting(6, 8))
	one := func(method, path, addr string) string {
		return method + " /" + path + " HTTP/1.1\r\nHost: links.example\r\nAccept: text/html\r\nX-Forwarded-For: " + addr + "\r\n\r\n"
	}
	for range 4 {
		compare(t, on, off, one("GET", "live", "203.0.113.7"), 0)
		compare(t, on, off, one("HEAD", "live", "2001:db8::1"), 0)
		compare(t, on, off, one("GET", "live", "2001:db8::2"), 3)
		compare(t, on, off, one("GET", "back", "203.0.113.8"), 0)
		compare(t, on, off, one("GET", "back", "203.0.113.8"), 0)
		for _, free := range []string{"dead", "bad", "warn", "nothing", "gone"} {
			compare(t, on, off, one("GET", free, "203.0.113.7"), 0)
		}
	}
	for _, r := range []*rig{on, off} {
		for _, refused := range []string{one("GET", "live", "203.0.113.9"), one("GET", "back", "203.0.113.8")} {
			got := r.exchange(t, refused)
			if !strings.HasPrefix(got, "HTTP/1.1 429 ") || !strings.Contains(got, "Retry-After: ") || !strings.Contains(got, "Cache-Control: no-store\r\n") {
				t.Errorf("after the limit: %s", got)
			}
		}
		for _, free := range map[string]string{"another link": one("GET", "temp", "203.0.113.9"), "another network": one("GET", "fwd", "203.0.113.10")} {
			if got := r.exchange(t, free); !strings.HasPrefix(got, "HTTP/1.1 30") {
				t.Errorf("%s", got)
			}
		}
		if clicks := r.rec.take(); len(clicks) != 2 {
			t.Errorf("%d clicks of two redirects", len(clicks))
		}
	}
}
