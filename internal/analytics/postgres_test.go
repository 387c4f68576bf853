package analytics_test

import (
	"fmt"
	"testing"
	"time"

	"curt/internal/analytics/analyticstest"
	"curt/internal/backend/postgres/counts"
	"curt/internal/clicks"
	"curt/internal/testkit"
)

// The scripts run on two servers that count into one database: each has every second
// click, and both answer with the sum.
func TestScriptsOnTwoServers(t *testing.T) {
	server := testkit.StartPostgres(t, testkit.PostgresConfig{})
	analyticstest.Run(t, "analyticstest/testdata", func(t *testing.T) analyticstest.System {
		url := server.Database(t)
		var both [2]*system
		for i := range both {
			store, err := counts.Open(t.Context(), counts.Config{URL: url, Instance: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			both[i] = open(t, store, 10*time.Millisecond)
		}
		return analyticstest.System{Reader: both[0], Load: func(t *testing.T, raws []clicks.Raw) {
			var parts [2][]clicks.Raw
			for i := range raws {
				parts[i%2] = append(parts[i%2], raws[i])
			}
			both[0].load(t, parts[0])
			both[1].load(t, parts[1])
			both[1].written(t)
		}}
	})
}

// written waits until everything that was counted is in the store.
func (s *system) written(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // another goroutine's, which tells nobody
		if stats := s.fold.Stats(); stats.Written == stats.Read {
			return
		}
		if time.Now().After(end) {
			t.Fatal("nothing was written")
		}
	}
}
