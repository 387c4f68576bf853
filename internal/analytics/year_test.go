package analytics_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"curt/internal/analytics"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/fold"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// fillYear fills a store with n clicks on one link in every quarter hour of some
// days, by the rows that Fold would write.
func fillYear(b testing.TB, store rollup.Store, first time.Time, days int, n uint64) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	values := func(n int, name string, of uint64) (list []rollup.Value) {
		for i := range n {
			list = append(list, rollup.Value{Value: fmt.Sprintf("%s %03d", name, i), Clicks: of/uint64(n) + 1, Humans: of / uint64(n)})
		}
		return list
	}
	for d := range days {
		day := first.AddDate(0, 0, d)
		var deltas []rollup.BucketDelta
		sum := &rollup.Rollup{}
		for q := range 96 {
			tags := make([]uint64, n)
			for i := range tags {
				tags[i] = random.Uint64N(20_000)*0x9e3779b97f4a7c15 + 1 // 20,000 people a day
			}
			r := &rollup.Rollup{Counts: rollup.Counts{Clicks: n, Humans: n}}
			r.Visitors.Add(tags)
			for m := range uint8(15) {
				r.Minutes = append(r.Minutes, rollup.Minute{Index: m, Clicks: n / 15, Humans: n / 15})
			}
			r.Dimensions[clicks.Country] = values(40, "C", n)
			r.Dimensions[clicks.City] = values(100, "A city", n)
			r.Dimensions[clicks.ReferrerHost] = values(100, "host.example", n)
			r.Dimensions[clicks.Browser] = values(12, "Browser", n)
			deltas = append(deltas, rollup.BucketDelta{Bucket: rollup.BucketAt(rollup.Quarter, day.Add(time.Duration(q)*15*time.Minute)), Rollup: r})
			sum.Add(r)
		}
		deltas = append(deltas, rollup.BucketDelta{Bucket: rollup.BucketAt(rollup.Day, day), Rollup: sum})
		total := rollup.Total{Counts: sum.Counts, FirstSeen: day.UnixMilli(), LastClicked: day.Add(23 * time.Hour).UnixMilli()}
		err := store.Apply(b.Context(), rollup.Batch{
			State: rollup.State{Generation: uint64(d) + 1, Position: clicklog.Position{Segment: uint64(d) + 1}},
			Links: func(yield func([]rollup.LinkDelta) bool) {
				yield([]rollup.LinkDelta{{Key: link.Key{Code: "hot"}, Total: total, Buckets: deltas}})
			},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkYear asks about a link with 10 million clicks, as the API does.
func BenchmarkYear(b *testing.B) {
	first := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	now := first.AddDate(1, 0, 0).Add(-time.Hour)
	store, err := counts.Open(b.Context(), counts.Config{Path: filepath.Join(b.TempDir(), "clicks.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }() // nothing is read any more
	fillYear(b, store, first, 365, 285)
	r := analytics.NewEmbedded(store, fold.New(fold.Config{}))
	zone := func(name string) *time.Location {
		z, err := analytics.ParseZone(name)
		if err != nil {
			b.Fatal(err)
		}
		return z
	}
	hot := link.Key{Code: "hot"}
	for _, q := range []struct {
		name string
		ask  func() error
	}{
		{"totals", func() error { _, err := r.Totals(b.Context(), analytics.Scope{Key: hot}, now); return err }},
		{"30 days", func() error {
			_, err := r.Series(b.Context(), analytics.Scope{Key: hot, From: now.AddDate(0, 0, -30), To: now}, analytics.Day, now)
			return err
		}},
		{"30 days Kolkata", func() error {
			_, err := r.Series(b.Context(), analytics.Scope{Key: hot, From: now.AddDate(0, 0, -30), To: now, Zone: zone("Asia/Kolkata")}, analytics.Day, now)
			return err
		}},
		{"year", func() error {
			_, err := r.Series(b.Context(), analytics.Scope{Key: hot, From: first, To: now}, analytics.Day, now)
			return err
		}},
		{"year Kolkata", func() error {
			_, err := r.Series(b.Context(), analytics.Scope{Key: hot, From: first, To: now, Zone: zone("Asia/Kolkata")}, analytics.Day, now)
			return err
		}},
		{"4000 hours", func() error {
			_, err := r.Series(b.Context(), analytics.Scope{Key: hot, From: now.Add(-3990 * time.Hour), To: now}, analytics.Hour, now)
			return err
		}},
		{"top 30 days", func() error {
			_, err := r.Top(b.Context(), analytics.Scope{Key: hot, From: now.AddDate(0, 0, -30), To: now}, 10, now, clicks.Country, clicks.City)
			return err
		}},
		{"top year", func() error {
			_, err := r.Top(b.Context(), analytics.Scope{Key: hot, From: first, To: now}, 10, now, clicks.Country, clicks.City, clicks.ReferrerHost, clicks.Browser)
			return err
		}},
	} {
		b.Run(q.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if err := q.ask(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
