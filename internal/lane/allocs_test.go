//go:build !race

// The race detector makes sync.Pool forget at random.

package lane_test

import (
	"strings"
	"testing"
)

func TestHitsAllocateNothing(t *testing.T) {
	for name, options := range map[string][]option{"direct": nil, "behind a proxy": {trusting("127.0.0.0/8")}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, true, append(options, func(s *setup) { s.lane.Recorder = nothing{} })...)
			nc := r.dial(t)
			request := []byte(strings.Replace(browser, "Accept:", "X-Forwarded-For: 203.0.113.9, 127.0.0.2\r\nAccept:", 1))
			roundTrip(t, nc, string(request)) // L1 has it now
			answer := make([]byte, 4096)
			got := testing.AllocsPerRun(2000, func() {
				if _, err := nc.Write(request); err != nil {
					t.Fatal(err)
				}
				if n, err := nc.Read(answer); err != nil || !strings.HasPrefix(string(answer[:12]), "HTTP/1.1 302") || n < 100 {
					t.Fatal(n, err)
				}
			})
			if got != 0 {
				t.Errorf("%v allocations a hit", got)
			}
		})
	}
}
