package analytics_test

import (
	"fmt"
	"testing"
	"time"

	"curt/internal/analytics"
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
		return script(func() loader {
			url := server.Database(t)
			var both pair
			for i := range both.each {
				store, err := counts.Open(t.Context(), counts.Config{URL: url, Instance: fmt.Sprint(i)})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = store.Close() })
				both.each[i] = open(t, store, 10*time.Millisecond)
			}
			both.Reader = both.each[0]
			return both
		})
	})
}

// pair is two servers, of which the first answers.
type pair struct {
	analytics.Reader

	each [2]*system
}

func (p pair) load(t *testing.T, raws []clicks.Raw) {
	t.Helper()
	var parts [2][]clicks.Raw
	for i := range raws {
		parts[i%2] = append(parts[i%2], raws[i])
	}
	p.each[0].load(t, parts[0])
	p.each[1].load(t, parts[1])
	p.each[1].written(t)
}

func (p pair) tagged(t *testing.T) bool {
	t.Helper()
	return p.each[0].tagged(t) && p.each[1].tagged(t)
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
