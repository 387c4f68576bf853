package clickhouse_test

import (
	"errors"
	"testing"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
	"curt/internal/testkit"
)

// TestImportedDays brings a day that another store has counted, twice: its clicks and visitors count once, and
// nobody takes the day for one that lost its clicks.
func TestImportedDays(t *testing.T) {
	s := testkit.StartClickHouse(t)
	database := s.Database(t)
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: s.URL(database)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	now := time.Now().UTC()
	day := now.Truncate(24*time.Hour).AddDate(0, 0, -5)
	noon := day.Add(12 * time.Hour)
	key, tags := link.Key{Code: "abc"}, []uint64{1 << 63, 5, 7}
	counts := rollup.Counts{Clicks: 4, Humans: 3, Previews: 2, Fallbacks: 1, Refused: 5}
	r := rollup.Rollup{Counts: counts}
	r.Visitors.Add([]uint64{1 << 63, 5, 7})
	r.Dimensions[clicks.Country] = []rollup.Value{{Value: "DE", Clicks: 4, Humans: 3}}
	imports := reconcile.ImportsOf(store.Tables)
	for _, batch := range []string{"one", "two"} {
		var rows []reconcile.Imported
		for _, g := range []rollup.Granularity{rollup.Day, rollup.Quarter} {
			rows = append(rows, reconcile.Imported{Key: key, Bucket: rollup.BucketAt(g, noon), Counts: counts, First: noon, Last: noon, Visitors: tags})
		}
		err := imports.Stage(t.Context(), batch, rows)
		if err == nil {
			err = imports.Adopt(t.Context(), batch, day, now, func(put func([]reconcile.ImportedValue) error) error { return put(reconcile.ValuesOf(key, &r)) })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"days", "quarters"} {
		got := s.Exec(t, "SELECT sum(clicks), sum(humans), sum(previews), sum(fallbacks), sum(refused), uniqCombined64IfMerge(14)(visitors) FROM "+database+"."+table+" WHERE code = 'abc'")
		if want := "4\t3\t2\t1\t5\t3"; got != want {
			t.Errorf("%s have %s, want %s", table, got, want)
		}
	}
	if got := s.Exec(t, "SELECT dimension, value, clicks, humans FROM "+database+".day_values WHERE version = (SELECT max(version) FROM "+database+".settled) ORDER BY dimension"); got == "" {
		t.Error("the day has no values")
	}
	if days, err := imports.Days(t.Context()); err != nil || len(days) != 1 || !days[day] {
		t.Errorf("imported days are %v, %v", days, err)
	}
	sums, err := imports.SumsBefore(t.Context(), now)
	if err != nil || sums[day].Counts != counts {
		t.Errorf("the sums are %+v, %v", sums, err)
	}
	if _, err := store.Verify(t.Context(), noon, now); !errors.Is(err, reconcile.ErrGone) {
		t.Errorf("verify: %v", err)
	}
	if err := store.RebuildDay(t.Context(), day, now); !errors.Is(err, reconcile.ErrGone) {
		t.Errorf("rebuild: %v", err)
	}
	prints, err := store.Fingerprints(t.Context(), day.AddDate(0, 0, -20))
	if err != nil || !prints[day].Imported() || prints[day].Sums == 0 || (reconcile.Fingerprint{}).Covers(prints[day]) {
		t.Errorf("the day's fingerprint is %+v, %v", prints[day], err)
	}
}
