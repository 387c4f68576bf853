package httpapi_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"curt/internal/analytics"
	"curt/internal/clicks"
	"curt/internal/link"
)

func TestClicksAreWatched(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.stats.counts = map[link.Key]uint64{{Code: "abc"}: 7, clicks.GroupKey("acme"): 9, clicks.GroupKey("default"): 5}
	for _, c := range []struct {
		key, path string
		status    int
		count     int
	}{
		{"acme", collection + "/abc/clicks/live", 200, 7},
		{"admin", collection + "/abc/clicks/live?domain=curt.test", 200, 7},
		{"acme", "/api/v1/clicks/live", 200, 9},
		{"acme", "/api/v1/clicks/live?workspace_id=acme", 200, 9},
		{"admin", "/api/v1/clicks/live", 200, 5},
		{"admin", "/api/v1/clicks/live?workspace_id=acme", 200, 9},
		{"acme", "/api/v1/clicks/live?workspace_id=default", 403, 0},
		{"acme", collection + "/nothing/clicks/live", 404, 0},
		{"reader", collection + "/abc/clicks/live", 403, 0},
		{"reader", "/api/v1/clicks/live", 403, 0},
		{"", collection + "/abc/clicks/live", 401, 0},
	} {
		got := s.do(t, c.key, http.MethodGet, c.path, "").want(t, c.status)
		if c.status != http.StatusOK {
			got.problem(t)
			continue
		}
		if want := fmt.Sprintf("event: clicks\ndata: {\"clicks\":%d}\n\n", c.count); string(got.body) != want || got.Header.Get("Content-Type") != "text/event-stream" || got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %q, %v", c.key, c.path, got.body, got.Header)
		}
	}
	if got := s.do(t, "acme", http.MethodHead, collection+"/abc/clicks/live", "").want(t, 200); len(got.body) != 0 {
		t.Errorf("HEAD: %q", got.body)
	}
	s.stats.err = fmt.Errorf("%w: the disk is away", analytics.ErrUnavailable)
	s.do(t, "acme", http.MethodGet, collection+"/abc/clicks/live", "").want(t, 503).problem(t)
}

// moved is a Reader whose count a test moves.
type moved struct {
	analytics.Reader

	counts chan uint64
	last   uint64
}

func (m *moved) Clicks(_ context.Context, keys []link.Key) ([]uint64, error) {
	select {
	case m.last = <-m.counts:
	default:
	}
	counts := make([]uint64, len(keys))
	for i := range counts {
		counts[i] = m.last
	}
	return counts, nil
}

// TestAStreamGoesOnUntilTheServerEnds sends a stream over a real connection, whose limits for requests and answers it
// outlives. On a machine that stands still they are over before the stream begins: longer ones follow.
func TestAStreamGoesOnUntilTheServerEnds(t *testing.T) {
	for limit := 200 * time.Millisecond; ; limit *= 4 {
		err := streamFor(t, limit)
		if err == nil {
			return
		}
		if limit > 30*time.Second {
			t.Fatal(err)
		}
	}
}

// streamFor reads a stream of a server with such limits, and returns why it was cut off.
func streamFor(t *testing.T, limit time.Duration) error {
	t.Helper()
	reader := &moved{counts: make(chan uint64, 1)}
	live := analytics.NewLive(reader)
	s := newService(t, func(p *parts) { p.Live = live })
	s.create(t, "acme", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- live.Run(ctx) }()
	server := httptest.NewUnstartedServer(s)
	server.Config.ReadTimeout, server.Config.WriteTimeout = limit, limit
	server.Config.ReadHeaderTimeout = time.Minute // or a request that is sent late is none
	server.Start()
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+collection+"/abc/clicks/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer acme")
	began := time.Now()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("no stream: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it is read to its end
	lines := bufio.NewScanner(res.Body)
	for _, want := range []string{`{"clicks":0}`, `{"clicks":3}`, `{"clicks":4}`} {
		found := false
		for !found && lines.Scan() {
			found = strings.HasSuffix(lines.Text(), want)
		}
		if !found {
			return fmt.Errorf("the stream ended before %s: %w", want, cmp.Or(lines.Err(), io.EOF))
		}
		time.Sleep(2*limit - time.Since(began)) // what follows is beyond the limits
		reader.counts <- map[string]uint64{`{"clicks":0}`: 3, `{"clicks":3}`: 4, `{"clicks":4}`: 4}[want]
	}
	live.Close()
	for lines.Scan() {
		if lines.Text() != "" {
			t.Errorf("after the last event: %q", lines.Text())
		}
	}
	if lines.Err() != nil {
		return fmt.Errorf("the stream was cut off: %w", lines.Err())
	}
	s.do(t, "acme", http.MethodGet, collection+"/abc/clicks/live", "").want(t, http.StatusServiceUnavailable).problem(t)
	cancel()
	return <-ended
}

func TestStreamsAreBounded(t *testing.T) {
	live := analytics.NewLive(&moved{})
	s := newService(t, func(p *parts) { p.Live = live })
	s.create(t, "acme", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	for range analytics.MaxWatchersEach {
		if _, err := live.Watch(link.Key{Code: "abc"}, "acme-key"); err != nil {
			t.Fatal(err)
		}
	}
	got := s.do(t, "acme", http.MethodGet, collection+"/abc/clicks/live", "").want(t, http.StatusTooManyRequests)
	if got.problem(t); got.Header.Get("Retry-After") == "" {
		t.Errorf("headers %v", got.Header)
	}
}

func TestDaysOfManyLinks(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.create(t, "acme", `{"long_url":"http://example.com","custom_alias":"def","domain":"go.example"}`)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"others"}`)
	s.stats.series = []analytics.Point{{Clicks: 1}, {Clicks: 2}}
	path := "/api/v1/stats/links"
	got := s.do(t, "acme", http.MethodGet, path+"?days=2&links=abc,others,go.example/def,nothing,elsewhere.example/abc,curt.test/abc", "").want(t, http.StatusOK)
	want := `{"start":"2026-05-31T00:00:00Z","series":[{"domain":"curt.test","short_code":"abc","clicks":[1,2]},` +
		`{"domain":"go.example","short_code":"def","clicks":[1,2]},{"domain":"curt.test","short_code":"abc","clicks":[1,2]}]}`
	if string(got.body) != want {
		t.Errorf("got  %s\nwant %s", got.body, want)
	}
	if got := s.do(t, "acme", http.MethodGet, path, "").want(t, http.StatusOK); !strings.Contains(string(got.body), `"series":[]`) {
		t.Errorf("of none: %s", got.body)
	}
	s.stats.err = errors.New("broken")
	s.do(t, "acme", http.MethodGet, path+"?links=abc", "").want(t, http.StatusInternalServerError)
}

func TestStatisticsOfAWorkspace(t *testing.T) {
	s := newService(t)
	s.stats.totals.Clicks, s.stats.totals.Clicks24h = 12, 3
	got := s.do(t, "acme", http.MethodGet, "/api/v1/stats?dimensions=country", "").want(t, http.StatusOK).json(t)
	if got["workspace_id"] != "acme" || got["orphans"] != nil || got["total_clicks"] != 12.0 || s.stats.asked.Key != clicks.GroupKey("acme") {
		t.Errorf("%v of %v", got, s.stats.asked.Key)
	}
	got = s.do(t, "admin", http.MethodGet, "/api/v1/stats?workspace_id=acme", "").want(t, http.StatusOK).json(t)
	orphans, _ := got["orphans"].(map[string]any)
	if got["workspace_id"] != "acme" || orphans["total_clicks"] != 12.0 || orphans["clicks_24h"] != 3.0 {
		t.Errorf("%v", got)
	}
	s.do(t, "acme", http.MethodGet, "/api/v1/stats?workspace_id=default", "").want(t, http.StatusForbidden).problem(t)
}

func TestStatisticsOfSomeClicks(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	click := clicks.Click{Time: noon().Add(-time.Hour), Outcome: clicks.Redirected, Country: "DE", Browser: "Firefox", Device: "desktop"}
	other := click
	other.Country, other.Bot = "FR", true
	s.past.page.Clicks = []clicks.Click{click, click, other}
	s.past.since = noon().Add(-3 * time.Hour)
	got := s.do(t, "admin", http.MethodGet, collection+"/abc/stats?interval=hour&country=DE&bot=false&dimensions=browser,country", "").want(t, http.StatusOK).json(t)
	top, _ := got["top"].(map[string]any)
	if got["total_clicks"] != 2.0 || got["human_clicks"] != 2.0 || got["filtered_from"] != "2026-06-01T09:00:00Z" || fmt.Sprint(top["browser"]) != "[map[clicks:2 value:Firefox]]" {
		t.Errorf("%v", got)
	}
	if got := s.do(t, "admin", http.MethodGet, collection+"/abc/stats", "").want(t, http.StatusOK).json(t); got["filtered_from"] != nil {
		t.Errorf("without a filter: %v", got["filtered_from"])
	}
	got = s.do(t, "acme", http.MethodGet, "/api/v1/stats?interval=hour&country=FR", "").want(t, http.StatusOK).json(t)
	if got["total_clicks"] != 1.0 || got["bot_clicks"] != 1.0 || s.past.asked.Key != clicks.GroupKey("acme") {
		t.Errorf("of a workspace: %v of %v", got, s.past.asked.Key)
	}
}

// badFilters are questions about some of the clicks, and about many links, that have no answer.
func badFilters() (all []hostile) {
	bad := func(name, path, field string) {
		all = append(all, hostile{name: "filters: " + name, method: "GET", path: path, want: 400, field: field})
	}
	stats := collection + "/victim/stats?"
	bad("sum of values", stats+"country=(other)", "country")
	bad("empty value", stats+"country=", "country")
	bad("value twice", stats+"country=DE&country=FR", "country")
	bad("long value", stats+"city="+strings.Repeat("x", 257), "city")
	bad("broken UTF-8", stats+"city=%ff", "city")
	bad("maybe a bot", stats+"bot=maybe", "bot")
	bad("visitor", stats+"visitor=1", "visitor")
	bad("value of a workspace", "/api/v1/stats?country=(other)", "country")
	bad("value of single clicks", collection+"/victim/clicks?browser="+strings.Repeat("x", 257), "browser")
	bad("visitor of single clicks", collection+"/victim/clicks?visitor=1", "visitor")
	bad("workspace is long", "/api/v1/stats?workspace_id="+strings.Repeat("w", 300), "")
	bad("code with a space", "/api/v1/stats/links?links=a%20b", "links")
	bad("domain is empty", "/api/v1/stats/links?links=/abc", "links")
	bad("code is empty", "/api/v1/stats/links?links=abc,", "links")
	bad("more than a page", "/api/v1/stats/links?links=abc"+strings.Repeat(",abc", 100), "links")
	bad("no days", "/api/v1/stats/links?days=0", "days")
	bad("years of days", "/api/v1/stats/links?days=93", "days")
	return all
}
