package clickhouse_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/testkit"
)

// Clicks go by the retention of their own workspace; what they add up to stays.
func expireClicks(t *testing.T, s *testkit.ClickHouse) {
	database := s.Database(t)
	store := open(t, s, database)
	now := time.Now().UTC()
	var block []clickdb.Row
	for i, keep := range []uint16{0, 5, 60} { // the first is the default of 30 days
		for _, age := range []int{2, 10, 40} {
			block = append(block, clickdb.Row{
				Key: link.Key{Code: link.Code(fmt.Sprint("k", i))}, RetentionDays: keep,
				Click: clicks.Click{Time: now.AddDate(0, 0, -age), Outcome: clicks.Redirected, Trigger: clicks.TriggerLink},
			})
		}
	}
	insert(t, store, "clicks:0:0", block)
	s.Exec(t, "SYSTEM START TTL MERGES "+database+".clicks")
	s.Exec(t, "OPTIMIZE TABLE "+database+".clicks FINAL")
	if got := s.Exec(t, "SELECT code, count() FROM "+database+".clicks GROUP BY code ORDER BY code FORMAT TSV"); got != "k0\t2\nk1\t1\nk2\t3" {
		t.Errorf("kept one by one:\n%s", got)
	}
	list, err := store.Clicks(t.Context(), []link.Key{{Code: "k0"}, {Code: "k1"}, {Code: "k2"}})
	if err != nil || list[0] != 3 || list[1] != 3 || list[2] != 3 {
		t.Errorf("added up: %v, %v", list, err)
	}
}

// A question that cannot be answered is an error of its own, never zeros.
func askNobody(t *testing.T, s *testkit.ClickHouse) {
	database := s.Database(t)
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: s.URL(database)})
	if err != nil {
		t.Fatal(err)
	}
	insert(t, store, "clicks:0:0", rows(100))
	ask := map[string]func() error{
		"totals": func() error { _, err := store.Totals(t.Context(), analytics.Scope{}, noon); return err },
		"series": func() error {
			_, err := store.Series(t.Context(), analytics.Scope{}, analytics.Day, noon)
			return err
		},
		"top": func() error {
			_, err := store.Top(t.Context(), analytics.Scope{}, 5, noon, clicks.Country)
			return err
		},
		"clicks": func() error { _, err := store.Clicks(t.Context(), []link.Key{{}}); return err },
		"insert": func() error { return store.Insert(t.Context(), "t", rows(1)) },
		"verify": func() error { _, err := store.Verify(t.Context(), noon, noon); return err },
	}
	for _, away := range []string{"without its tables", "closed"} {
		for _, table := range []string{"clicks", "minutes", "quarters", "days", "day_values"} {
			s.Exec(t, "DROP TABLE IF EXISTS "+database+"."+table)
		}
		if away == "closed" {
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for name, question := range ask {
			if err := question(); !errors.Is(err, analytics.ErrUnavailable) {
				t.Errorf("%s, %s: %v, want ErrUnavailable", away, name, err)
			}
		}
	}
	if _, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: "http//what:is:this"}); !errors.Is(err, clickdb.ErrUnfit) {
		t.Errorf("an address that is none: %v", err)
	}
}

// Days that begin at other times than UTC's need the visitors of quarter hours. Of two
// months of a busy link those are too many for one answer, by UTC days they are not.
func leaveUncounted(t *testing.T, s *testkit.ClickHouse) {
	database := s.Database(t)
	store := open(t, s, database)
	for _, table := range []string{"quarters", "days"} {
		width := map[string]string{"quarters": "900", "days": "86400"}[table]
		s.Exec(t, `INSERT INTO `+database+`.`+table+` SELECT '', 'hot', toDateTime('2026-01-01 00:00:00', 'UTC') + number * `+width+`,
			2000, 2000, 0, 0, 0, toDateTime64('2026-01-01 00:00:00', 3, 'UTC'), toDateTime64('2026-01-01 00:00:00', 3, 'UTC'),
			arrayReduce('uniqCombined64IfState(14)', [toUInt64(number + 1)], [toUInt8(1)])
			FROM numbers(intDiv(60 * 86400, `+width+`))`)
	}
	zone, err := analytics.ParseZone("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, z := range []*time.Location{zone, time.UTC} {
		scope := analytics.Scope{Key: link.Key{Code: "hot"}, From: first, To: first.AddDate(0, 0, 60), Zone: z}
		points, err := store.Series(t.Context(), scope, analytics.Day, scope.To)
		if err != nil {
			t.Fatal(err)
		}
		var sum uint64
		for _, p := range points {
			sum += p.Clicks
			if p.Uncounted != (z == zone) || p.Uncounted == (p.Visitors > 0) {
				t.Errorf("%v: %+v", z, p)
			}
		}
		if want := uint64(60 * 2000); z == zone && sum != 96*want || z == time.UTC && sum != want {
			t.Errorf("%v: %d clicks", z, sum)
		}
	}
}
