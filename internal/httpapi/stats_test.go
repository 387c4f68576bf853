package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/analytics"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
)

func TestStatisticsAsTheAPIShowsThem(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	hour := noon().Add(-time.Hour)
	s.stats.totals = analytics.Totals{
		Counts:      rollup.Counts{Clicks: 12, Humans: 9, Previews: 2},
		VisitorDays: 5, Clicks24h: 4, LastClicked: noon().Add(-time.Second),
		LastUpdated: noon(), CompleteUntil: noon().Add(-2 * time.Second),
	}
	s.stats.series = []analytics.Point{{Start: hour, Clicks: 4, Humans: 3, Visitors: 2, Complete: true}, {Start: noon()}}
	got := s.do(t, "admin", http.MethodGet, collection+"/abc/stats", "").want(t, http.StatusOK).json(t)
	want := map[string]any{
		"short_code": "abc", "total_clicks": 12.0, "human_clicks": 9.0, "bot_clicks": 3.0, "previews": 2.0, "visitor_days": 5.0,
		"clicks_24h": 4.0, "last_clicked_at": "2026-06-01T11:59:59Z", "last_updated_at": "2026-06-01T12:00:00Z",
		"complete_until": "2026-06-01T11:59:58Z", "filtered_from": nil, "stale": false, "as_of": nil, "top": map[string]any{},
		"series": []any{
			map[string]any{"start": "2026-06-01T11:00:00Z", "clicks": 4.0, "humans": 3.0, "visitors": 2.0, "complete": true},
			map[string]any{"start": "2026-06-01T12:00:00Z", "clicks": 0.0, "humans": 0.0, "visitors": 0.0, "complete": false},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statistics (-want +got):\n%s", diff)
	}

	s.stats.totals, s.stats.series = analytics.Totals{}, nil
	got = s.do(t, "admin", http.MethodGet, collection+"/abc/stats", "").want(t, http.StatusOK).json(t)
	if series, ok := got["series"].([]any); !ok || len(series) != 0 || got["last_clicked_at"] != nil {
		t.Errorf("never clicked: %v", got)
	}
	s.stats.err = fmt.Errorf("%w: the disk is away", analytics.ErrUnavailable)
	s.do(t, "admin", http.MethodGet, collection+"/abc/stats", "").want(t, http.StatusServiceUnavailable).problem(t)
}

type window struct {
	From, To time.Time
	Step     analytics.Step
}

func TestRangesThatStatisticsDoNotKeep(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.stats.rangeErr = fmt.Errorf("%w: minutes of last year", analytics.ErrRange)
	s.do(t, "admin", http.MethodGet, collection+"/abc/stats?interval=minute&from=2025-01-01T00:00Z", "").
		want(t, http.StatusBadRequest).problem(t)
}

func TestWindowOfASeries(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	s := newService(t, func(p *parts) { p.Now = func() time.Time { return noon().Add(7*time.Minute + 30*time.Second) } })
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	for query, want := range map[string]window{
		"":                 {From: at("2026-05-03T00:00:00Z"), To: at("2026-06-02T00:00:00Z"), Step: analytics.Day},
		"interval=day":     {From: at("2026-05-03T00:00:00Z"), To: at("2026-06-02T00:00:00Z"), Step: analytics.Day},
		"interval=hour":    {From: at("2026-05-30T13:00:00Z"), To: at("2026-06-01T13:00:00Z"), Step: analytics.Hour},
		"interval=quarter": {From: at("2026-06-01T00:15:00Z"), To: at("2026-06-01T12:15:00Z"), Step: analytics.Quarter},
		"interval=minute":  {From: at("2026-06-01T11:20:00Z"), To: at("2026-06-01T12:08:00Z"), Step: analytics.Minute},
		"interval=hour&from=2026-06-01T00:30Z&to=2026-06-01T02:00:00.000%2B01:00": {
			From: at("2026-06-01T00:00:00Z"), To: at("2026-06-01T01:00:00Z"), Step: analytics.Hour,
		},
		"tz=Asia/Kolkata": {From: at("2026-05-02T18:30:00Z"), To: at("2026-06-01T18:30:00Z"), Step: analytics.Day},
		"tz=Europe/Berlin&from=2026-03-29T10:00Z&to=2026-03-29T11:00Z": {
			From: at("2026-03-28T23:00:00Z"), To: at("2026-03-29T22:00:00Z"), Step: analytics.Day,
		},
		"tz=Asia/Kathmandu&interval=hour": {From: at("2026-05-30T12:15:00Z"), To: at("2026-06-01T12:15:00Z"), Step: analytics.Hour},
		"from=2016-06-01T00:00Z":          {From: at("2016-06-01T00:00:00Z"), To: at("2026-06-02T00:00:00Z"), Step: analytics.Day},
	} {
		s.do(t, "admin", http.MethodGet, collection+"/abc/stats?"+query, "").want(t, http.StatusOK)
		if diff := cmp.Diff(want, window{s.stats.asked.From.UTC(), s.stats.asked.To.UTC(), s.stats.step}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}

func TestDimensionsThatAreAskedFor(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.stats.top = map[clicks.Dimension][]analytics.Row{
		clicks.Country: {{Value: "DE", Clicks: 3, Humans: 2}, {Value: clicks.Other, Clicks: 1}}, clicks.UTMSource: {},
	}
	got := s.do(t, "admin", http.MethodGet, collection+"/abc/stats?dimensions=utm_source,country&top=7", "").want(t, http.StatusOK).json(t)
	want := map[string]any{
		"utm_source": []any{},
		"country": []any{
			map[string]any{"value": "DE", "clicks": 3.0}, map[string]any{"value": "(other)", "clicks": 1.0},
		},
	}
	if diff := cmp.Diff(want, got["top"]); diff != "" || s.stats.most != 7 {
		t.Errorf("the top %d (-want +got):\n%s", s.stats.most, diff)
	}
	var names []string
	for d := range clicks.NumDimensions {
		names = append(names, clicks.Dimension(d).String())
	}
	got = s.do(t, "admin", http.MethodGet, collection+"/abc/stats?dimensions="+strings.Join(names, ","), "").want(t, http.StatusOK).json(t)
	if top, _ := got["top"].(map[string]any); len(top) != clicks.NumDimensions || s.stats.most != 10 {
		t.Errorf("all dimensions: %v, the top %d", got["top"], s.stats.most)
	}
}

// badStatistics are questions about clicks that have no answer.
func badStatistics() (all []hostile) {
	bad := func(name, query, field string) {
		all = append(all, hostile{name: name, method: "GET", path: collection + "/victim/stats?" + query, want: 400, field: field})
	}
	bad("zone of a file", "tz=../../../../etc/passwd", "tz")
	bad("zone of a path", "tz=/etc/localtime", "tz")
	bad("zone of the machine", "tz=Local", "tz")
	bad("zone with leap seconds", "tz=right/UTC", "tz")
	bad("zone of nowhere", "tz=Atlantis/City", "tz")
	bad("zone is an offset", "tz=%2B01:00", "tz")
	bad("zone with NUL", "tz=Europe/Berlin%00", "tz")
	bad("zone of broken UTF-8", "tz=%ff", "tz")
	bad("zone is a folder", "tz=Europe", "tz")
	bad("zone is long", "tz="+strings.Repeat("Europe/", 500), "tz")
	bad("zone twice", "tz=UTC&tz=UTC", "tz")
	bad("zone is empty", "tz=", "tz")
	bad("unknown dimension", "dimensions=visitor", "dimensions")
	bad("dimension in another case", "dimensions=Country", "dimensions")
	bad("dimension twice", "dimensions=country,city,country", "dimensions")
	bad("dimension is empty", "dimensions=country,,city", "dimensions")
	bad("dimensions end with a comma", "dimensions=country,", "dimensions")
	bad("dimensions with spaces", "dimensions=country,%20city", "dimensions")
	bad("dimension with a line end", "dimensions=country%0d%0aX-Evil:1", "dimensions")
	bad("a thousand dimensions", "dimensions="+strings.Repeat("country,", 1000), "dimensions")
	bad("injected dimension", "dimensions=country;drop", "")
	bad("top of nothing", "top=0", "top")
	bad("top of too many", "top=201", "top")
	bad("top below nothing", "top=-1", "top")
	bad("top of ages", "top=99999999999999999999", "top")
	bad("top of a fraction", "top=1.5", "top")
	bad("to beyond what is counted", "to=9999-01-01T00:00Z", "to")
	bad("from beyond what is counted", "from=2090-01-01T00:00Z&to=2090-01-02T00:00Z", "from")
	return all
}
