package clickhouse_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
	"curt/internal/clicks/history"
	"curt/internal/link"
	"curt/internal/testkit"
)

// walkAll walks pages to their end and returns the clicks in their order.
func walkAll(t *testing.T, store *clickhouse.Store, q history.Query) (all []clicks.Click) {
	t.Helper()
	for range 1000 {
		page, err := store.Page(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Clicks) > q.Limit {
			t.Fatalf("%d clicks, want %d at most", len(page.Clicks), q.Limit)
		}
		all = append(all, page.Clicks...)
		if !page.More {
			return all
		}
		if page.Next == q.Before {
			t.Fatalf("page after %+v leads nowhere", q.Before)
		}
		q.Before = page.Next
	}
	t.Fatal("the walk has no end")
	return nil
}

// Every click of a link or a workspace comes once, newest first, whatever the pages' size.
func showClicks(t *testing.T, s *testkit.ClickHouse) {
	store := open(t, s, s.Database(t))
	begin := time.Now().UTC().Truncate(time.Hour).Add(-72 * time.Hour)
	block := rows(1_000)
	for i := range block {
		// Many share a millisecond, and some days have none.
		block[i].Time = begin.Add(time.Duration(i/7)*time.Millisecond).AddDate(0, 0, i%3/2*2)
		block[i].ID.Sequence = uint64(i)
	}
	block[0].Time = time.Unix(1, 0) // by a clock that is wrong
	insert(t, store, "clicks:0:0", block)

	of := func(keep func(*clickdb.Row) bool) (want []clicks.Click) {
		for i := range block {
			if block[i].Outcome != clicks.Orphan && keep(&block[i]) {
				want = append(want, block[i].Click)
			}
		}
		return want
	}
	one := link.Key{Domain: "go.example", Code: "c7"}
	from, to := begin.Add(100*time.Millisecond), begin.Add(300*time.Millisecond)
	for name, test := range map[string]struct {
		query history.Query
		want  []clicks.Click
	}{
		"a link":                  {history.Query{Key: one}, of(func(r *clickdb.Row) bool { return r.Key == one })},
		"a link of a wrong clock": {history.Query{Key: block[0].Key}, of(func(r *clickdb.Row) bool { return r.Key == block[0].Key })},
		"a link, between": {history.Query{Key: one, From: from, To: to}, of(func(r *clickdb.Row) bool {
			return r.Key == one && !r.Time.Before(from) && r.Time.Before(to)
		})},
		"a link, chosen": {history.Query{Key: one, Filter: func(c *clicks.Click) bool { return c.Visitor%5 == 0 }}, of(func(r *clickdb.Row) bool {
			return r.Key == one && r.Visitor%5 == 0
		})},
		"a link that nobody clicked": {history.Query{Key: link.Key{Code: "never"}}, nil},
		"the orphans":                {history.Query{}, nil},
		"a workspace":                {history.Query{Key: clicks.GroupKey("w1")}, of(func(r *clickdb.Row) bool { return r.Workspace == "w1" })},
		"a workspace, between": {history.Query{Key: clicks.GroupKey("w1"), From: from, To: to}, of(func(r *clickdb.Row) bool {
			return r.Workspace == "w1" && !r.Time.Before(from) && r.Time.Before(to)
		})},
		"a workspace, chosen": {history.Query{Key: clicks.GroupKey("w1"), Filter: func(c *clicks.Click) bool { return c.Visitor == 3 }}, of(func(r *clickdb.Row) bool {
			return r.Workspace == "w1" && r.Visitor == 3
		})},
		"all time": {history.Query{Key: one, From: time.Time{}.Add(1), To: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, of(func(r *clickdb.Row) bool { return r.Key == one })},
	} {
		for _, limit := range []int{1, 7, 1000} {
			if len(test.want) > 30*limit {
				continue
			}
			test.query.Limit = limit
			got := walkAll(t, store, test.query)
			for i := range got[:max(len(got)-1, 0)] {
				if got[i].Time.Before(got[i+1].Time) {
					t.Errorf("%s by %d: %v before %v", name, limit, got[i].Time, got[i+1].Time)
				}
			}
			if d := cmp.Diff(sorted(test.want), sorted(got)); d != "" {
				t.Errorf("%s by %d: %s", name, limit, d)
			}
		}
	}
	if since := store.Since(); since.After(begin) || since.Before(begin.AddDate(0, 0, -28)) {
		t.Errorf("clicks since %v, the first is of %v", since, begin)
	}
}

// sorted puts clicks in an order of their own.
func sorted(list []clicks.Click) []string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = fmt.Sprintf("%v %+v", list[i].Time, list[i])
	}
	slices.Sort(texts)
	return texts
}
