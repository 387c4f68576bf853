package clickhouse_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/testkit"
)

func rebuildWhatIsOff(t *testing.T, s *testkit.ClickHouse) {
	database := s.Database(t)
	store := open(t, s, database)
	insert(t, store, "clicks:0:0", rows(1_000))
	now := noon.Add(15 * time.Hour)
	if n, err := store.FinalizeDays(t.Context(), now); err != nil || n != 1 {
		t.Fatalf("%d days were settled, %v", n, err)
	}
	check := func(want bool) {
		t.Helper()
		drifts, err := store.Verify(t.Context(), noon, now)
		if err != nil {
			t.Fatal(err)
		}
		if len(drifts) != 4 {
			t.Fatalf("%d tables were verified", len(drifts))
		}
		for _, d := range drifts {
			if d.Clicks == 0 || (d.Rows > 0) != want || (d.Off > 0) != want {
				t.Errorf("%+v, want drift %v", d, want)
			}
		}
		watched, err := store.Watch(t.Context(), noon, now)
		if err != nil || len(watched) != 3 {
			t.Fatalf("%d tables were watched, %v", len(watched), err)
		}
		for i, d := range watched[:2] { // days are compared with quarter hours, which are as wrong
			if d.Off != drifts[i].Off || d.Clicks != drifts[i].Clicks {
				t.Errorf("%+v, want %+v", d, drifts[i])
			}
		}
		whole, err := store.VerifyDay(t.Context(), noon, now)
		if err != nil || len(whole) != len(drifts) {
			t.Fatalf("%d tables of the day, %v", len(whole), err)
		}
		for i, d := range whole {
			if d.Off < drifts[i].Off || d.Clicks < drifts[i].Clicks || (d.Off > 0) != want {
				t.Errorf("of the day %+v, of an hour of it %+v", d, drifts[i])
			}
		}
		if !want && watched[2].Off > 0 {
			t.Errorf("%+v", watched[2])
		}
	}
	check(false)
	whole := contents(t, s, database)

	// Everything of the hour is counted twice, some of it is lost, and there is a link
	// that nobody clicked on.
	for _, table := range []string{"minutes", "quarters", "days", "day_values"} {
		name := database + "." + table
		s.Exec(t, "INSERT INTO "+name+" SELECT * FROM "+name+" WHERE at < '2026-03-14 12:30:00'")
		s.Exec(t, "INSERT INTO "+name+" SELECT * REPLACE('nobody' AS code) FROM "+name+" WHERE code = 'c8' AND at = '2026-03-14 12:00:00' OR code = 'c8' AND at = '2026-03-14 00:00:00'")
		s.Exec(t, "ALTER TABLE "+name+" DELETE WHERE code = 'c7' AND at < '2026-03-14 13:00:00' SETTINGS mutations_sync = 1")
	}
	check(true)
	for _, rebuild := range []func(context.Context, time.Time, time.Time) error{store.Rebuild, store.RebuildDay} { // a second time changes nothing
		if err := rebuild(t.Context(), noon, now); err != nil {
			t.Fatal(err)
		}
		check(false)
	}
	if again := contents(t, s, database); again != whole {
		t.Errorf("before:\n%safter:\n%s", whole, again)
	}
	if _, err := store.Verify(t.Context(), noon, noon.AddDate(0, 0, 31)); !errors.Is(err, reconcile.ErrGone) {
		t.Errorf("an hour whose clicks are gone: %v", err)
	}
	if err := store.Rebuild(t.Context(), noon, noon.AddDate(0, 0, 31)); !errors.Is(err, reconcile.ErrGone) {
		t.Errorf("an hour whose clicks are gone: %v", err)
	}
}

// countLastSecond has a part of which all clicks are in the last second of a day.
func countLastSecond(t *testing.T, s *testkit.ClickHouse) {
	store := open(t, s, s.Database(t))
	midnight, key := noon.Truncate(24*time.Hour), link.Key{Code: "late"}
	one := clickdb.Row{ID: clicks.EventID{Instance: 7}, Key: key, Click: clicks.Click{
		Time: midnight.Add(-500 * time.Millisecond), Outcome: clicks.Redirected, Country: "NP", Visitor: 1,
	}}
	insert(t, store, "clicks:0:0", []clickdb.Row{one})
	scope, now := analytics.Scope{Key: key, From: midnight.Add(-24 * time.Hour), To: midnight}, midnight.Add(15*time.Hour)
	for range 2 { // counted from the clicks themselves, and then added up
		values, err := store.Top(t.Context(), scope, 10, now, clicks.Country)
		if err != nil || len(values[0]) != 1 || values[0][0].Clicks != 1 {
			t.Errorf("countries: %v, %v", values, err)
		}
		if _, err := store.FinalizeDays(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	drifts, err := store.Verify(t.Context(), midnight.Add(-time.Hour), now)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drifts {
		if d.Clicks == 0 || d.Rows > 0 {
			t.Errorf("%+v", d)
		}
	}
	n := 0
	if err := store.StoredClicks(t.Context(), midnight.Add(-time.Hour), midnight, 12, func(reconcile.StoredClick) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("%d clicks are kept, %v", n, err)
	}
	if held, err := store.Holds(t.Context(), &one); err != nil || !held {
		t.Errorf("the click is kept: %v, %v", held, err)
	}
}
