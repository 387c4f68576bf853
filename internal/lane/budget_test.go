package lane_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"curt/internal/clientaddr"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
)

// Scanners are told to wait on both ways alike, and known codes never.
func TestTheLaneMetersUnknownCodesAsNetHTTPDoes(t *testing.T) {
	budget := func(c *setup) {
		c.links.Unknown = redirect.NewBudget(ratelimit.NewMemory(), ratelimit.Per(4, time.Hour))
		c.links.Clients = clientaddr.New(netip.MustParsePrefix("127.0.0.0/8"))
	}
	on, off := start(t, true, budget), start(t, false, budget)
	one := func(code, addr string) string {
		return "GET /" + code + " HTTP/1.1\r\nHost: links.example\r\nX-Forwarded-For: " + addr + "\r\n\r\n"
	}
	for range 7 {
		compare(t, on, off, one("guess", "203.0.113.7"), 0)
		compare(t, on, off, one("guess", "2001:db8::1"), 0)
		compare(t, on, off, one("guess", "2001:db8::2"), 3)
		compare(t, on, off, one("live", "203.0.113.7"), 0)
		compare(t, on, off, one("dead", "2001:db8::1"), 0)
	}
	for _, r := range []*rig{on, off} {
		if got := r.exchange(t, one("guess", "203.0.113.7")); !strings.HasPrefix(got, "HTTP/1.1 429 ") || !strings.Contains(got, "Retry-After: 900\r\n") {
			t.Errorf("after the budget was spent: %s", got)
		}
		if got := r.exchange(t, one("live", "203.0.113.7")); !strings.HasPrefix(got, "HTTP/1.1 302 ") {
			t.Errorf("a known code: %s", got)
		}
	}
}
