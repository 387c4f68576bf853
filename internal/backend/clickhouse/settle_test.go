package clickhouse_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/testkit"
)

// visits are n clicks of people on a link from one host.
func visits(n int, at time.Time, host string) []clickdb.Row {
	all := make([]clickdb.Row, n)
	for i := range all {
		all[i] = clickdb.Row{
			Key: link.Key{Code: "busy"}, ID: clicks.EventID{Sequence: uint64(i)}, Workspace: "w",
			Click: clicks.Click{Time: at, Outcome: clicks.Redirected, ReferrerHost: host, Country: "NP"},
		}
	}
	return all
}

// What a day comes to is the same before it is settled and after, for any time and zone;
// then it is the most clicked values and the rest, however many strangers invent.
func settleDays(t *testing.T, s *testkit.ClickHouse) {
	store := open(t, s, s.Database(t))
	var block []clickdb.Row
	for day := range 4 {
		for hour := range 24 {
			at := noon.AddDate(0, 0, day-2).Add(time.Duration(hour-12) * time.Hour)
			block = append(block, visits(1+day, at, fmt.Sprintf("at%d.example", hour%5))...)
			block = append(block, visits(1, at, fmt.Sprintf("on%d.example", day))...)
		}
	}
	block[0].Bot = true
	insert(t, store, "clicks:0:0", block)
	now := noon.AddDate(0, 0, 1).Add(14 * time.Hour) // the last day is over
	ask := func() (all [][]analytics.Row) {
		t.Helper()
		for _, key := range []link.Key{{Code: "busy"}, clicks.GroupKey("w")} {
			for _, scope := range []analytics.Scope{
				{Key: key},
				{Key: key, From: noon.AddDate(0, 0, -1), To: noon},
				{Key: key, From: noon.AddDate(0, 0, -2).Add(-210 * time.Minute), To: noon.Add(15 * time.Minute)},
				{Key: key, From: noon, To: noon.Add(time.Hour)},
				{Key: key, From: noon.Add(-12 * time.Hour), To: noon.Add(12 * time.Hour)},
			} {
				top, err := store.Top(t.Context(), scope, 50, now, clicks.ReferrerHost, clicks.UTMTerm, clicks.Country)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, top...)
			}
		}
		return all
	}
	before := ask()
	if len(before[0]) != 9 || len(before[1]) != 0 || before[2][0].Clicks != 24*14 || before[2][0].Humans != 24*14-1 {
		t.Errorf("of its life: %v", before[:3])
	}
	for _, want := range []int{4, 0} { // and nothing is to be done a second time
		if n, err := store.UnfinalizedDays(t.Context(), now); err != nil || n != want {
			t.Errorf("%d days are not settled, %v; want %d", n, err, want)
		}
		if n, err := store.FinalizeDays(t.Context(), now); err != nil || n != want {
			t.Fatalf("%d days were settled, %v", n, err)
		}
		if d := cmp.Diff(before, ask()); d != "" {
			t.Error(d)
		}
	}

	// Clicks that come late are added at the next turn, once an hour has gone by.
	var late []clickdb.Row
	for i := range 300 {
		late = append(late, visits(1, noon, fmt.Sprintf("once%03d.example", i))...)
	}
	insert(t, store, "clicks:0:1", late)
	for _, turn := range []struct {
		after time.Duration
		days  int
	}{{time.Minute, 0}, {2 * time.Hour, 1}, {4 * time.Hour, 0}} {
		if n, err := store.FinalizeDays(t.Context(), now.Add(turn.after)); err != nil || n != turn.days {
			t.Fatalf("%d days were settled after %v, %v", n, turn.after, err)
		}
	}
	today := analytics.Scope{Key: link.Key{Code: "busy"}, From: noon.Add(-12 * time.Hour), To: noon.Add(12 * time.Hour)}
	top, err := store.Top(t.Context(), today, 1000, now, clicks.ReferrerHost, clicks.Country)
	if err != nil {
		t.Fatal(err)
	}
	if len(top[0]) != clicks.MaxValues+1 || top[0][0] != (analytics.Row{Value: clicks.Other, Clicks: 106, Humans: 106}) || top[1][0].Clicks != 396 {
		t.Errorf("%d referrers, %v, countries %v", len(top[0]), top[0][:3], top[1])
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

// Several may settle a day, and one of them may die: it counts once.
func settleTwice(t *testing.T, s *testkit.ClickHouse) {
	database := s.Database(t)
	store := open(t, s, database)
	insert(t, store, "clicks:0:0", visits(10, noon, "a.example"))
	now := noon.Add(24 * time.Hour)
	if _, err := store.FinalizeDays(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	// What one that died, and one that was as fast, leave behind.
	s.Exec(t, "INSERT INTO "+database+".day_values SELECT * REPLACE(toUInt64(7) AS version) FROM "+database+".day_values LIMIT 1")
	s.Exec(t, "INSERT INTO "+database+".day_values SELECT * REPLACE(version + 1 AS version) FROM "+database+".day_values WHERE version > 7")
	s.Exec(t, "INSERT INTO "+database+".settled SELECT * REPLACE(version + 1 AS version) FROM "+database+".settled")
	check := func() {
		t.Helper()
		top, err := store.Top(t.Context(), analytics.Scope{Key: link.Key{Code: "busy"}}, 10, now, clicks.ReferrerHost)
		if err != nil || len(top[0]) != 1 || top[0][0].Clicks != 10 {
			t.Errorf("%v, %v", top, err)
		}
	}
	check()
	insert(t, store, "clicks:0:1", visits(1, noon, ""))
	if n, err := store.FinalizeDays(t.Context(), now.Add(2*time.Hour)); err != nil || n != 1 {
		t.Fatalf("%d days were settled, %v", n, err)
	}
	check()
}
