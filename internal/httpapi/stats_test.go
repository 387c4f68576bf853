package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/analytics"
	"curt/internal/clicks"
)

func TestStatisticsAsTheAPIShowsThem(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	hour := noon().Add(-time.Hour)
	s.stats.totals = analytics.Totals{
		Counts:      clicks.Counts{Clicks: 12, Humans: 9, Previews: 2},
		VisitorDays: 5, Clicks24h: 4, LastClicked: noon().Add(-time.Second),
		LastUpdated: noon(), CompleteUntil: noon().Add(-2 * time.Second),
	}
	s.stats.series = []analytics.Point{{Start: hour, Clicks: 4, Humans: 3, Visitors: 2, Complete: true}, {Start: noon()}}
	got := s.do(t, "admin", http.MethodGet, collection+"/abc/stats", "").want(t, http.StatusOK).json(t)
	want := map[string]any{
		"short_code": "abc", "total_clicks": 12.0, "human_clicks": 9.0, "bot_clicks": 3.0, "previews": 2.0, "visitor_days": 5.0,
		"clicks_24h": 4.0, "last_clicked_at": "2026-06-01T11:59:59Z", "last_updated_at": "2026-06-01T12:00:00Z",
		"complete_until": "2026-06-01T11:59:58Z",
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
		"from=2016-06-01T00:00Z": {From: at("2016-06-01T00:00:00Z"), To: at("2026-06-02T00:00:00Z"), Step: analytics.Day},
	} {
		s.do(t, "admin", http.MethodGet, collection+"/abc/stats?"+query, "").want(t, http.StatusOK)
		if diff := cmp.Diff(want, window{s.stats.asked.From, s.stats.asked.To, s.stats.step}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}
