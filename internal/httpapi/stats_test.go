package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/httpapi"
	"curt/internal/link"
)

func TestStatisticsAsTheAPIShowsThem(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	hour := noon().Add(-time.Hour)
	s.stats.report = httpapi.Report{
		TotalClicks: 12, HumanClicks: 9, BotClicks: 3, Previews: 2, VisitorDays: 5, Clicks24h: 4, LastClickedAt: noon().Add(-time.Second),
		Series:        []httpapi.Point{{Start: hour, Clicks: 4, Humans: 3, Visitors: 2, Complete: true}, {Start: noon()}},
		LastUpdatedAt: noon(), CompleteUntil: noon().Add(-2 * time.Second),
	}
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

	s.stats.report = httpapi.Report{}
	got = s.do(t, "admin", http.MethodGet, collection+"/abc/stats", "").want(t, http.StatusOK).json(t)
	if series, ok := got["series"].([]any); !ok || len(series) != 0 || got["last_clicked_at"] != nil {
		t.Errorf("never clicked: %v", got)
	}
	s.stats.err = link.ErrUnavailable
	s.do(t, "admin", http.MethodGet, collection+"/abc/stats", "").want(t, http.StatusServiceUnavailable).problem(t)
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
	for query, want := range map[string]httpapi.Window{
		"":                 {From: at("2026-05-03T00:00:00Z"), To: at("2026-06-02T00:00:00Z"), Interval: httpapi.Day},
		"interval=day":     {From: at("2026-05-03T00:00:00Z"), To: at("2026-06-02T00:00:00Z"), Interval: httpapi.Day},
		"interval=hour":    {From: at("2026-05-30T13:00:00Z"), To: at("2026-06-01T13:00:00Z"), Interval: httpapi.Hour},
		"interval=quarter": {From: at("2026-06-01T00:15:00Z"), To: at("2026-06-01T12:15:00Z"), Interval: httpapi.Quarter},
		"interval=minute":  {From: at("2026-06-01T11:20:00Z"), To: at("2026-06-01T12:08:00Z"), Interval: httpapi.Minute},
		"interval=hour&from=2026-06-01T00:30Z&to=2026-06-01T02:00:00.000%2B01:00": {
			From: at("2026-06-01T00:00:00Z"), To: at("2026-06-01T01:00:00Z"), Interval: httpapi.Hour,
		},
		"from=1996-06-01T00:00Z": {From: at("1996-06-01T00:00:00Z"), To: at("2026-06-02T00:00:00Z"), Interval: httpapi.Day},
	} {
		s.do(t, "admin", http.MethodGet, collection+"/abc/stats?"+query, "").want(t, http.StatusOK)
		want.Now = noon().Add(7*time.Minute + 30*time.Second)
		if diff := cmp.Diff(want, s.stats.asked); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}
