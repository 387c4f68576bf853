package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/link"
)

// Stats are the statistics of one link.
type Stats struct {
	ShortCode     string       `json:"short_code"`
	TotalClicks   uint64       `json:"total_clicks" doc:"Redirects answered, to people and bots, without previews."`
	HumanClicks   uint64       `json:"human_clicks"`
	BotClicks     uint64       `json:"bot_clicks"`
	Previews      uint64       `json:"previews" doc:"HEAD requests and prefetches."`
	VisitorDays   uint64       `json:"visitor_days" doc:"Visitors are counted per day and added up."`
	Clicks24h     uint64       `json:"clicks_24h" doc:"Of total_clicks, those of the last 24 hours."`
	LastClickedAt *time.Time   `json:"last_clicked_at"`
	Series        []StatsPoint `json:"series" nullable:"false"`
	LastUpdatedAt *time.Time   `json:"last_updated_at"`
	CompleteUntil *time.Time   `json:"complete_until" doc:"Every click before it is counted."`
}

// StatsPoint is a point as the API shows it.
type StatsPoint struct {
	Start    time.Time `json:"start"`
	Clicks   uint64    `json:"clicks"`
	Humans   uint64    `json:"humans"`
	Visitors uint64    `json:"visitors"`
	Complete bool      `json:"complete" doc:"No click of this step is still on its way."`
}

func (a *api) statsOperation(d describer) *operation {
	moment := &huma.Schema{Type: huma.TypeString, Format: "date-time"}
	return &operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: linksPath + "/{code}/stats", OperationID: "link-stats", Summary: "Count the clicks of a link",
			Parameters: []*huma.Param{
				codeParam(), domainParam(),
				queryParam("from", "The series begins with the step that holds this date. Default: 48 steps before to, 30 of days.", moment),
				queryParam("to", "The series ends before this date. Default: now.", moment),
				queryParam("interval", "The step of the series, in UTC.", enumSchema("day", "hour", "quarter", "minute")),
			},
			Responses: d.answers(200, "The statistics.", Stats{}, nil, 404),
		},
		scope: auth.StatsRead, serve: (*call).linkStats,
	}
}

func (c *call) linkStats() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	scope, step, err := c.window(k)
	if err != nil {
		return err
	}
	if err := c.api.links.Exists(c.r.Context(), c.who, k); err != nil {
		return err
	}
	totals, err := c.api.stats.Totals(c.r.Context(), analytics.Scope{Key: k}, c.now)
	if err != nil {
		return fmt.Errorf("statistics of %s: %w", k, err)
	}
	series, err := c.api.stats.Series(c.r.Context(), scope, step, c.now)
	switch {
	case errors.Is(err, analytics.ErrRange):
		return badField("from", fmt.Sprintf("is out of what is kept; minutes are kept for %s", analytics.MinuteRetention))
	case err != nil:
		return fmt.Errorf("series of %s: %w", k, err)
	}
	return c.json(http.StatusOK, shown(k, totals, series))
}

// window returns the part of time that the query asks for, in whole steps.
func (c *call) window(k link.Key) (s analytics.Scope, step analytics.Step, err error) {
	name, err := c.choice("interval")
	if err != nil {
		return s, 0, err
	}
	step, _ = analytics.ParseStep(name) // choice allows its names only
	length := map[analytics.Step]time.Duration{
		analytics.Minute: time.Minute, analytics.Quarter: 15 * time.Minute, analytics.Hour: time.Hour, analytics.Day: 24 * time.Hour,
	}[step]
	to, err := c.instant("to", c.now.UTC())
	if err != nil {
		return s, 0, err
	}
	s = analytics.Scope{Key: k, To: ceil(to, length)}
	steps := 48
	if step == analytics.Day {
		steps = 30
	}
	from, err := c.instant("from", s.To.Add(-time.Duration(steps)*length))
	if err != nil {
		return s, 0, err
	}
	s.From = from.Truncate(length)
	switch {
	case !s.From.Before(s.To):
		return s, 0, badField("from", "must lie before to")
	case s.To.Sub(s.From)/length > analytics.MaxPoints:
		return s, 0, badField("interval", fmt.Sprintf("would make more than %d points; take a longer one", analytics.MaxPoints))
	}
	return s, step, nil
}

// ceil rounds up to a whole step. Steps of time.Truncate are counted from year 1,
// which is midnight UTC, so that days are UTC days.
func ceil(t time.Time, step time.Duration) time.Time {
	if floor := t.Truncate(step); floor.Before(t) {
		return floor.Add(step)
	}
	return t
}

func shown(k link.Key, t analytics.Totals, series []analytics.Point) Stats {
	s := Stats{
		ShortCode: string(k.Code), TotalClicks: t.Clicks, HumanClicks: t.Humans, BotClicks: t.Clicks - t.Humans,
		Previews: t.Previews, VisitorDays: t.VisitorDays, Clicks24h: t.Clicks24h,
		LastClickedAt: instant(&t.LastClicked), LastUpdatedAt: instant(&t.LastUpdated), CompleteUntil: instant(&t.CompleteUntil),
		Series: make([]StatsPoint, len(series)),
	}
	for i, p := range series {
		s.Series[i] = StatsPoint(p)
	}
	return s
}
