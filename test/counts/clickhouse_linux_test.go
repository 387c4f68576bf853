package counts_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// stats is what the test reads of statistics.
type stats struct {
	TotalClicks int `json:"total_clicks"`
	HumanClicks int `json:"human_clicks"`
	VisitorDays int `json:"visitor_days"`
	Clicks24h   int `json:"clicks_24h"`
	Series      []struct{ Clicks int }
	Top         map[string][]struct {
		Value  string
		Clicks int
	}
}

// TestStatisticsOfClickHouse lets a server show what is in ClickHouse, and then has ClickHouse
// hang: links are followed as before, and statistics are refused rather than zero.
func TestStatisticsOfClickHouse(t *testing.T) {
	database, house := testkit.StartPostgres(t, testkit.PostgresConfig{}), testkit.StartClickHouse(t)
	url := house.URL(house.Database(t))
	s := curttest.Start(t, curttest.Options{Data: t.TempDir(), Env: []string{
		"CURT_LINKS=" + database.Database(t), "CURT_ANALYTICS=" + url, "CURT_ROLE=redirect,api",
		"CURT_EVENTS=kafka://" + curttest.FreeAddr(t) + "/clicks", // nobody is there: clicks wait
	}})
	create(t, s)
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	now := time.Now().UTC()
	var rows []clickdb.Row
	for i := range 100 {
		rows = append(rows, clickdb.Row{
			Key: link.Key{Code: alias}, ID: clicks.EventID{Instance: 1, Sequence: uint64(i)}, Workspace: "default", Click: clicks.Click{
				Time: now.Add(-time.Duration(i) * time.Minute), Outcome: clicks.Redirected, Trigger: clicks.TriggerLink, Visitor: uint64(i%10 + 1),
				Country: []string{"NP", "IS"}[i%2], Device: "desktop", Browser: "Firefox", OS: "Linux", ReferrerHost: clicks.Direct, Bot: i%10 == 9,
			},
		})
	}
	if err := store.Insert(t.Context(), "clicks:0:0-99", rows); err != nil {
		t.Fatal(err)
	}
	show(t, s)
	inOrder(t, s)
	awaitReady(t, s, "ok")

	// A server that hangs: what was shown is shown again, with its time; what was not is refused.
	if err := syscall.Kill(house.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(house.Pid, syscall.SIGCONT) }()
	click(t, s, 10)
	showStale(t, s)
	if a := ask(t, s, "/api/v1/links/"+alias+"/stats"); a.Status != http.StatusServiceUnavailable {
		t.Errorf("statistics of a server that hangs: %d %s", a.Status, a.Body)
	}
	awaitReady(t, s, "unavailable")
	if err := syscall.Kill(house.Pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ask(t, s, "/api/v1/links/"+alias+"/stats").Status != http.StatusOK; time.Sleep(50 * time.Millisecond) { // as above
		if time.Now().After(end) {
			t.Fatal("ClickHouse is back, and its statistics are not shown")
		}
	}
	show(t, s)
	if failed, _, err := s.Metric(t.Context(), "curt_clickhouse_failures_total"); err != nil || failed == 0 {
		t.Errorf("%v failures, %v", failed, err)
	}
}

// awaitReady waits until /readyz, which stays 200, says so of ClickHouse.
func awaitReady(t *testing.T, s *curttest.Server, status string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // what is awaited is another process's
		a := ask(t, s, "/readyz")
		if a.Status == http.StatusOK && strings.Contains(string(a.Body), `"clickhouse":{"status":"`+status+`","required":false}`) {
			return
		}
		if a.Status != http.StatusOK || time.Now().After(end) {
			t.Fatalf("/readyz: %d %s", a.Status, a.Body)
		}
	}
}

// showStale expects the numbers that show has seen, soon and marked as earlier ones.
func showStale(t *testing.T, s *curttest.Server) {
	t.Helper()
	for _, path := range []string{"/api/v1/links/" + alias + "/stats", "/api/v1/stats"} {
		var was struct {
			TotalClicks int       `json:"total_clicks"`
			Stale       bool      `json:"stale"`
			AsOf        time.Time `json:"as_of"`
		}
		begun := time.Now()
		answer(t, s, path+"?dimensions=country,browser&interval=hour", &was)
		if !was.Stale || was.TotalClicks != 100 || was.AsOf.After(begun) || begun.Sub(was.AsOf) > 10*time.Minute {
			t.Errorf("%s while ClickHouse hangs: %+v", path, was)
		}
		if took := time.Since(begun); took > patience {
			t.Errorf("%s while ClickHouse hangs took %v", path, took)
		}
	}
}

// inOrder waits until the link is in the order by clicks.
func inOrder(t *testing.T, s *curttest.Server) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) { // what is awaited is another process's
		var page struct{ Links []struct{ Clicks int } }
		answer(t, s, "/api/v1/links?sort=-clicks", &page)
		if len(page.Links) == 1 && page.Links[0].Clicks == 100 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v the order by clicks is %+v", patience, page)
		}
	}
}

// show compares what the API answers with what was inserted.
func show(t *testing.T, s *curttest.Server) {
	t.Helper()
	for _, path := range []string{"/api/v1/links/" + alias + "/stats", "/api/v1/stats"} {
		var all, some stats
		answer(t, s, path+"?dimensions=country,browser&interval=hour", &all)
		if all.TotalClicks != 100 || all.HumanClicks != 90 || all.Clicks24h != 100 || len(all.Top["country"]) != 2 || all.Top["country"][0].Clicks != 50 {
			t.Errorf("%s: %+v", path, all)
		}
		sum := 0
		for _, p := range all.Series {
			sum += p.Clicks
		}
		if sum != 100 {
			t.Errorf("%s: the series has %d clicks", path, sum)
		}
		answer(t, s, path+"?country=NP&bot=false&interval=hour&dimensions=browser", &some)
		if some.TotalClicks != 50 || some.HumanClicks != 50 || some.Top["browser"][0].Clicks != 50 {
			t.Errorf("%s of one country: %+v", path, some)
		}
	}
	var links struct {
		Links []struct {
			Clicks int `json:"clicks"`
		}
	}
	answer(t, s, "/api/v1/links", &links)
	if len(links.Links) != 1 || links.Links[0].Clicks != 100 {
		t.Errorf("list: %+v", links)
	}
	seen, cursor := 0, ""
	for {
		var page struct {
			Clicks []struct {
				Time    time.Time
				Country string
			}
			Next string `json:"next_cursor"`
		}
		answer(t, s, "/api/v1/links/"+alias+"/clicks?limit=30"+cursor, &page)
		for _, c := range page.Clicks {
			if want := []string{"NP", "IS"}[seen%2]; c.Country != want {
				t.Fatalf("click %d is from %s, want %s", seen, c.Country, want)
			}
			seen++
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
	}
	if seen != 100 {
		t.Errorf("%d clicks one by one", seen)
	}
}

func ask(t *testing.T, s *curttest.Server, path string) curttest.Answer {
	t.Helper()
	a, err := s.MustDial(t).Do("GET", path, []string{"Authorization: Bearer " + curttest.Key}, "")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func answer(t *testing.T, s *curttest.Server, path string, into any) {
	t.Helper()
	a := ask(t, s, path)
	// A machine that is busy may take longer than statistics are waited for.
	for end := time.Now().Add(patience); a.Status == http.StatusServiceUnavailable && time.Now().Before(end); {
		a = ask(t, s, path)
	}
	if a.Status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("%s: %v in %s", path, err, a.Body)
	}
}
