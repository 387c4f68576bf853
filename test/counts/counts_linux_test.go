package counts_test

import (
	"net/http"
	"os"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

const alias = "together"

// patience is how long is waited for what usually takes a second: a machine with other work may take minutes.
const patience = 3 * time.Minute

// TestSeveralServersCountEachClickOnce lets two servers count clicks of one code, kills one
// whose clicks wait in its log, and starts both again: each answers with the sum of all, and
// never with more.
func TestSeveralServersCountEachClickOnce(t *testing.T) {
	database := testkit.StartPostgres(t, testkit.PostgresConfig{})
	links, counts := database.Database(t), database.Database(t)
	options := func() curttest.Options {
		return curttest.Options{Data: t.TempDir(), Env: []string{
			"CURT_LINKS=" + links, "CURT_ANALYTICS=" + counts, "CURT_FOLD_INTERVAL=300ms",
		}}
	}
	here, there := options(), options()
	a, b := curttest.Start(t, here), curttest.Start(t, there)
	link := create(t, a)

	click(t, a, 120)
	click(t, b, 80)
	await(t, a, link, 200)
	await(t, b, link, 200)

	// Of what is in its log when it dies nothing is lost, and nothing counts twice.
	click(t, b, 50)
	captured(t, b, 130)
	b.Kill()
	click(t, a, 30)
	awaitSome(t, a, link, 230, 280) // some of the dead one's may be counted already
	b = curttest.Start(t, there)
	await(t, a, link, 280)
	await(t, b, link, 280)

	// Whoever ends in order leaves nothing behind.
	click(t, a, 20)
	if code, _ := a.Terminate(t); code != 0 {
		t.Errorf("ended with %d", code)
	}
	await(t, b, link, 300)
	a = curttest.Start(t, here)
	await(t, a, link, 300)
	var stats struct {
		Complete *time.Time `json:"complete_until"`
	}
	clicked := time.Now() // and not again
	for end := clicked.Add(patience); stats.Complete == nil || stats.Complete.Before(clicked); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("complete until %v", stats.Complete)
		}
		if err := a.MustDial(t).GetJSON("/api/v1/links/"+alias+"/stats", &stats); err != nil {
			t.Fatal(err)
		}
	}
}

func create(t *testing.T, s *curttest.Server) []curttest.Link {
	t.Helper()
	a, err := s.MustDial(t).Do("POST", "/api/v1/links", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"},
		`{"long_url":"https://example.com/counts","custom_alias":"`+alias+`"}`)
	if err != nil || a.Status != http.StatusCreated {
		t.Fatalf("create: %d %s, %v", a.Status, a.Body, err)
	}
	return []curttest.Link{{Code: alias}}
}

func click(t *testing.T, s *curttest.Server, n int) {
	t.Helper()
	c := s.MustDial(t)
	for end := time.Now().Add(patience); n > 0; {
		a, err := c.Do("GET", "/"+alias, []string{"User-Agent: Mozilla/5.0 Firefox/128.0"}, "")
		if err == nil && a.Status == http.StatusServiceUnavailable && time.Now().Before(end) {
			continue // a busy machine is unavailable now and then, which is no click
		}
		if err != nil || a.Status != http.StatusFound {
			t.Fatalf("click: %d %s, %v", a.Status, a.Body, err)
		}
		n--
	}
}

// await waits until a sum is told; until then the answer may be any number up to it.
func await(t *testing.T, s *curttest.Server, link []curttest.Link, sum int64) {
	t.Helper()
	awaitSome(t, s, link, sum, sum)
}

// awaitSome is await for a sum that is only known to lie between two numbers.
func awaitSome(t *testing.T, s *curttest.Server, link []curttest.Link, least, most int64) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		got := s.Total(t, link)
		if got > most {
			t.Fatalf("%d clicks are told, there were %d", got, most)
		}
		if got >= least {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d clicks are told, want %d to %d", got, least, most)
		}
		time.Sleep(20 * time.Millisecond) // what is awaited is another process's
	}
}

// captured waits until a server has that many clicks in its log.
func captured(t *testing.T, s *curttest.Server, n float64) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		got, _, err := s.Metric(t.Context(), "curt_clicks_captured_total")
		if err != nil {
			t.Fatal(err)
		}
		if got >= n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v clicks were captured, want %v", got, n)
		}
		time.Sleep(5 * time.Millisecond) // what is awaited is another process's
	}
}
