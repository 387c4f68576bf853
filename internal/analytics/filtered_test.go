package analytics_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/analytics"
	"curt/internal/clicks"
	"curt/internal/clicks/history"
	"curt/internal/clicks/rollup"
)

// raw is a History of clicks that a test makes, newest first, in pages of a size.
type raw struct {
	clicks []clicks.Click
	page   int
	since  time.Time
	err    error
}

func (r *raw) Since() time.Time { return r.since }

func (r *raw) Page(_ context.Context, q history.Query) (p history.Page, err error) {
	at := int(q.Before.Record)
	end := min(len(r.clicks), at+min(r.page, q.Limit))
	for _, c := range r.clicks[at:end] {
		if !c.Time.Before(q.From) && c.Time.Before(q.To) {
			p.Clicks = append(p.Clicks, c)
		}
	}
	p.More, p.Next = end < len(r.clicks), history.Cursor{Record: uint32(end)}
	return p, r.err
}

func TestFiltersCountWhatPasses(t *testing.T) {
	now := time.Date(2026, 6, 3, 12, 30, 0, 0, time.UTC)
	click := func(ago time.Duration, country, browser string, visitor uint64, change ...func(*clicks.Click)) clicks.Click {
		c := clicks.Click{Time: now.Add(-ago), Outcome: clicks.Redirected, Country: country, Browser: browser, Visitor: visitor, ReferrerHost: clicks.Direct}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	bot := func(c *clicks.Click) { c.Bot = true }
	history := &raw{page: 2, clicks: []clicks.Click{
		click(time.Minute, "DE", "Firefox", 1),
		click(2*time.Minute, "DE", "Firefox", 1),
		click(3*time.Minute, "DE", "Chrome", 2),
		click(4*time.Minute, "DE", "Firefox", 9, bot),
		click(5*time.Minute, "DE", "Firefox", 3, func(c *clicks.Click) { c.Preview = true }),
		click(6*time.Minute, "DE", "Firefox", 3, func(c *clicks.Click) { c.Outcome = clicks.Refused }),
		click(7*time.Minute, "FR", "Firefox", 4),
		click(25*time.Hour, "DE", "Firefox", 1),
	}}
	scope := analytics.Scope{From: now.Add(-48 * time.Hour).Truncate(24 * time.Hour), To: now.Truncate(24 * time.Hour).Add(24 * time.Hour)}
	all := analytics.Totals{LastUpdated: now, CompleteUntil: now}
	count := func(f analytics.Filter) analytics.FilteredCounts {
		t.Helper()
		s, err := analytics.CountFiltered(t.Context(), history, scope, analytics.Day, f, 10, all, now, clicks.Country, clicks.Browser)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	got := count(analytics.Filter{Values: map[clicks.Dimension]string{clicks.Country: "DE", clicks.Browser: "Firefox"}})
	want := analytics.FilteredCounts{
		Totals: analytics.Totals{
			Counts: rollup.Counts{Clicks: 4, Humans: 3, Previews: 1}, VisitorDays: 2, Clicks24h: 3,
			LastClicked: now.Add(-time.Minute), LastUpdated: now, CompleteUntil: now,
		},
		Points: []analytics.Point{
			{Start: scope.From, Complete: true},
			{Start: scope.From.Add(24 * time.Hour), Clicks: 1, Humans: 1, Visitors: 1, Complete: true},
			{Start: scope.From.Add(48 * time.Hour), Clicks: 3, Humans: 2, Visitors: 1},
		},
		Top:  [][]analytics.Row{{{Value: "DE", Clicks: 4, Humans: 3}}, {{Value: "Firefox", Clicks: 4, Humans: 3}}},
		From: scope.From,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Germans with Firefox (-want +got):\n%s", diff)
	}
	yes := true
	if got := count(analytics.Filter{Bot: &yes}); got.Clicks != 1 || got.Humans != 0 || got.VisitorDays != 0 {
		t.Errorf("bots: %+v", got.Totals)
	}
	history.since = now.Add(-time.Hour)
	if got := count(analytics.Filter{Bot: &yes}); !got.From.Equal(history.since) {
		t.Errorf("counted from %v, and raw clicks begin at %v", got.From, history.since)
	}
	history.err = errors.New("the disk is away")
	if _, err := analytics.CountFiltered(t.Context(), history, scope, analytics.Day, analytics.Filter{Bot: &yes}, 1, all, now); !errors.Is(err, analytics.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// TestFiltersEnd: a link may have more clicks than one answer counts, and a log may be full
// of other links' clicks.
func TestFiltersEnd(t *testing.T) {
	now := time.Date(2026, 6, 3, 12, 0, 0, 0, time.UTC)
	history := &raw{page: 10_000}
	for i := range 130_000 {
		history.clicks = append(history.clicks, clicks.Click{Time: now.Add(-time.Duration(i) * time.Second), Outcome: clicks.Redirected, Country: "DE"})
	}
	scope := analytics.Scope{From: now.Add(-7 * 24 * time.Hour), To: now.Add(time.Second)}
	filter := analytics.Filter{Values: map[clicks.Dimension]string{clicks.Country: "DE"}}
	got, err := analytics.CountFiltered(t.Context(), history, scope, analytics.Hour, filter, 1, analytics.Totals{}, now)
	if err != nil || got.Clicks != 100_000 || !got.From.Equal(now.Add(-99_999*time.Second)) {
		t.Errorf("%d clicks from %v on, %v", got.Clicks, got.From, err)
	}
	history.page = 3
	got, err = analytics.CountFiltered(t.Context(), history, scope, analytics.Hour, filter, 1, analytics.Totals{}, now)
	if err != nil || got.Clicks != 3*32 || !got.From.Equal(now.Add(-95*time.Second)) {
		t.Errorf("%d clicks from %v on, %v", got.Clicks, got.From, err)
	}
}
