package clickhouse_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
	"curt/internal/testkit"
)

// As many visitors are told of before a day is settled and after, for all times: those who
// came on several days, bots, and who looked only, too.
func settleVisitors(t *testing.T, s *testkit.ClickHouse) {
	store := open(t, s, s.Database(t))
	var block []clickdb.Row
	for day := range 4 {
		for hour := range 24 {
			for i, row := range visits(20, noon.AddDate(0, 0, day-2).Add(time.Duration(hour-12)*time.Hour), "") {
				row.Visitor = uint64(i * (hour + 1)) // 0 is nobody
				row.Bot, row.Preview = i == 3, i == 5
				if i == 7 {
					row.Outcome = clicks.FellBack
				}
				block = append(block, row)
			}
		}
	}
	insert(t, store, "clicks:0:0", block)
	type answer struct {
		Days   uint64
		Counts rollup.Counts
		Points []analytics.Point
	}
	now := noon.AddDate(0, 0, 1).Add(11 * time.Hour) // the last day is not over
	ask := func() (all []answer) {
		t.Helper()
		for _, key := range []link.Key{{Code: "busy"}, clicks.GroupKey("w"), {Code: "nobody"}} {
			for _, scope := range []analytics.Scope{
				{Key: key},
				{Key: key, From: noon.AddDate(0, 0, -1), To: noon.AddDate(0, 0, 1)},
				{Key: key, From: noon.Add(-12 * time.Hour), To: noon.Add(12 * time.Hour)},
				{Key: key, From: noon.Add(-36 * time.Hour), To: noon.Add(time.Hour)},
				{Key: key, From: noon, To: noon.Add(time.Hour)},
			} {
				totals, err := store.Totals(t.Context(), scope, now)
				if err != nil {
					t.Fatal(err)
				}
				points, err := store.Series(t.Context(), scope, analytics.Day, now)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, answer{totals.VisitorDays, totals.Counts, points})
			}
		}
		return all
	}
	before := ask()
	if before[0].Days < 400 || before[0].Points[0].Visitors < 100 || before[4].Days != 16 {
		t.Errorf("before: %+v, %+v", before[0], before[4])
	}
	if n, err := store.FinalizeDays(t.Context(), now); err != nil || n != 3 {
		t.Fatalf("%d days were settled, %v", n, err)
	}
	if d := cmp.Diff(before, ask()); d != "" {
		t.Errorf("-before +settled: %s", d)
	}

	// Who comes late counts at once, and is a visitor at the next turn.
	insert(t, store, "clicks:0:1", []clickdb.Row{{
		Key: link.Key{Code: "busy"}, Click: clicks.Click{Time: noon, Outcome: clicks.Redirected, Visitor: 1 << 40},
	}})
	whole := func() analytics.Totals {
		t.Helper()
		totals, err := store.Totals(t.Context(), analytics.Scope{Key: link.Key{Code: "busy"}}, now)
		if err != nil {
			t.Fatal(err)
		}
		return totals
	}
	late := whole()
	if _, err := store.FinalizeDays(t.Context(), now.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	settled := whole()
	if late.VisitorDays != before[0].Days || late.Clicks != before[0].Counts.Clicks+1 || settled.VisitorDays != before[0].Days+1 {
		t.Errorf("before %d, late %d of %d clicks, settled %d", before[0].Days, late.VisitorDays, late.Clicks, settled.VisitorDays)
	}
	drifts, err := store.Verify(t.Context(), noon, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drifts {
		if d.Rows > 0 || d.Off > 0 || d.Clicks == 0 {
			t.Errorf("%+v", d)
		}
	}
}
