package lane_test

import (
	"strings"
	"testing"

	"curt/internal/clicks"
)

// A Host that nobody configured serves the default domain. A link that leads to that
// very Host would send its visitor round, so it is no redirect there: neither on the
// first request nor from L1, on a connection of its own or after another Host.
func TestALinkToTheStrangeHostItIsAskedByIsNoRedirect(t *testing.T) {
	on, off := start(t, true), start(t, false)
	one := func(method, code, host string) string {
		return method + " /" + code + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	}
	for _, r := range []*rig{on, off} {
		for range 2 {
			for host, want := range map[string]string{
				"links.example": "302", "links.example:8080": "302", "other.example": "302", "stranger.example": "302", "stranger.example:80800": "302",
				"stranger.example:8080": "508", "STRANGER.Example:8080": "508", "stranger.example.:8080": "508",
			} {
				r.rec.take()
				if got := r.exchange(t, one("GET", "circle", host)); !strings.HasPrefix(got, "HTTP/1.1 "+want+" ") || (want == "508") == strings.Contains(got, "Location:") {
					t.Errorf("%s: %s", host, got)
				}
				outcome := clicks.Redirected
				if want == "508" {
					outcome = clicks.Refused
				}
				if got := r.rec.take(); len(got) != 1 || got[0].Outcome != outcome {
					t.Errorf("%s: clicks %+v", host, got)
				}
			}
		}
	}
	strange, known := one("GET", "circle", "stranger.example:8080"), one("GET", "circle", "links.example")
	for seed := range uint64(4) {
		for _, s := range []string{
			strange + strange, known + strange + known, strange + known + strange, one("HEAD", "circle", "Stranger.example:8080") + strange,
			strings.Replace(strange, "\r\n\r\n", "\r\nAccept: text/html\r\n\r\n", 1) + one("GET", "live", "stranger.example:8080"),
		} {
			compare(t, on, off, s, seed)
		}
	}
}
