package worker_test

import (
	"testing"

	"curt/internal/worker"
)

// FuzzProgress reads what anybody may write beside an offset.
func FuzzProgress(f *testing.F) {
	for _, text := range []string{"", "AQA", "AQAAAAAAAAAAAQ", "curt-0b7c2c9e", "AQUBAgMEBQYHCAE"} {
		f.Add(text, int64(10))
	}
	f.Fuzz(func(_ *testing.T, text string, end int64) {
		if end >= 0 {
			_ = worker.DecodeProgress(text, end)
		}
	})
}
