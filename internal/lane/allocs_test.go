package lane_test

import (
	"runtime"
	"strings"
	"testing"

	"curt/internal/lane/lanetest"
)

func TestHitsAllocateNothing(t *testing.T) {
	for name, options := range map[string][]option{"direct": nil, "behind a proxy": {trusting("127.0.0.0/8")}, "behind one that states countries": {stating}, "with limits": {limiting(1<<30, 1<<30)}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, true, append(options, func(s *setup) { s.lane.Recorder = nothing{} })...)
			nc := r.dial(t)
			request := []byte(strings.Replace(lanetest.Browser, "Accept:", "X-Forwarded-For: 203.0.113.9, 127.0.0.2\r\nCF-IPCountry: DE\r\nAccept:", 1))
			roundTrip(t, nc, string(request)) // L1 has it now
			answer := make([]byte, 4096)
			hit := func() {
				if _, err := nc.Write(request); err != nil {
					t.Fatal(err)
				}
				if n, err := nc.Read(answer); err != nil || !strings.HasPrefix(string(answer[:12]), "HTTP/1.1 302") || n < 100 {
					t.Fatal(n, err)
				}
			}
			if got := testing.AllocsPerRun(2000, hit); got != 0 {
				t.Errorf("%v allocations a hit", got)
			}
			// Nor right behind collections, when whoever allocates must help to mark.
			const rounds = 20
			var spent uint64
			for range rounds {
				runtime.GC()
				runtime.GC()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				hit()
				runtime.ReadMemStats(&after)
				spent += after.Mallocs - before.Mallocs
			}
			if spent >= rounds { // other goroutines allocate now and then
				t.Errorf("%d allocations by %d hits behind collections", spent, rounds)
			}
		})
	}
}
