package clickhouse_test

import (
	"testing"
	"time"

	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/testkit"
)

// tellAgain asks how far clicks have come: an answer is good for a second, and for nobody whose
// clock is before it.
func tellAgain(t *testing.T, s *testkit.ClickHouse) {
	store := open(t, s, s.Database(t))
	now := time.Now().Truncate(time.Millisecond).UTC()
	const instance = 7
	advance := func(at time.Duration) {
		t.Helper()
		ms := now.Add(at).UnixMilli()
		if err := store.Advance(t.Context(), []watermarks.Watermark{
			{Topic: "t", Partitions: 1, First: ms, Watermark: ms, LastContact: ms},
			{Topic: "t", Partitions: 1, Instance: instance, First: ms, Watermark: ms, LastContact: ms},
		}); err != nil {
			t.Fatal(err)
		}
	}
	told := func(asked, want time.Duration) {
		t.Helper()
		p, err := store.Progress(t.Context(), now.Add(asked))
		if err != nil || !p.Complete.Equal(now.Add(want)) {
			t.Errorf("asked at %v: complete until %v, %v; want %v", asked, p.Complete.Sub(now), err, want)
		}
	}
	advance(-time.Minute)
	told(0, -time.Minute)
	advance(-30 * time.Second)
	told(time.Second-1, -time.Minute)
	told(time.Second, -30*time.Second)
	advance(-10 * time.Second)
	told(time.Second-1, -10*time.Second) // the clock went back
}

// failTogether has nobody told that what failed was done.
func failTogether(t *testing.T, s *testkit.ClickHouse) {
	database := s.Database(t)
	store := open(t, s, database)
	insert(t, store, "clicks:0:0", rows(100))
	now := noon.Add(15 * time.Hour)
	s.Exec(t, "RENAME TABLE "+database+".day_values TO "+database+".away")
	if n, err := store.FinalizeDays(t.Context(), now); err == nil || n != 0 {
		t.Errorf("%d days were settled without a table for them, %v", n, err)
	}
	s.Exec(t, "RENAME TABLE "+database+".away TO "+database+".day_values")
	if n, err := store.FinalizeDays(t.Context(), now); err != nil || n != 1 {
		t.Errorf("%d days were settled, %v; want the one that failed", n, err)
	}
	s.Exec(t, "DROP TABLE "+database+".settled")
	if n, err := store.UnfinalizedDays(t.Context(), now); err == nil {
		t.Errorf("%d days are not settled, although nobody knows which are", n)
	}
	s.Exec(t, "DROP TABLE "+database+".watermarks")
	if err := store.Advance(t.Context(), []watermarks.Watermark{{Topic: "t", Partitions: 1}}); err == nil {
		t.Error("a watermark is kept without a table for it")
	}
	if p, err := store.Progress(t.Context(), now); err == nil {
		t.Errorf("%+v is told without a table of it", p)
	}
}
