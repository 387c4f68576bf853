package lane_test

import (
	"testing"

	"curt/internal/lane/lanetest"
)

// BenchmarkHit is a redirect over a connection that stays open, without and with limits.
func BenchmarkHit(b *testing.B) {
	for _, c := range []struct {
		name    string
		options []option
	}{{"no limits", nil}, {"limits", []option{limiting(1<<30, 1<<30)}}} {
		b.Run(c.name, func(b *testing.B) {
			r := start(b, true, append(c.options, func(s *setup) { s.lane.Recorder = nothing{} })...)
			nc := r.dial(b)
			answer := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write([]byte(lanetest.Browser)); err != nil {
					b.Fatal(err)
				}
				if n, err := nc.Read(answer); err != nil || n < 100 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
