package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/clicks"
	"curt/internal/link"
)

// Stats are the statistics of one link.
type Stats struct {
	ShortCode     string                  `json:"short_code"`
	TotalClicks   uint64                  `json:"total_clicks" doc:"Redirects answered, to people and bots, without previews."`
	HumanClicks   uint64                  `json:"human_clicks"`
	BotClicks     uint64                  `json:"bot_clicks"`
	Previews      uint64                  `json:"previews" doc:"HEAD requests and prefetches."`
	VisitorDays   uint64                  `json:"visitor_days" doc:"Visitors are counted per day and added up."`
	Clicks24h     uint64                  `json:"clicks_24h" doc:"Of total_clicks, those of the last 24 hours."`
	LastClickedAt *time.Time              `json:"last_clicked_at"`
	Series        []StatsPoint            `json:"series" nullable:"false"`
	Top           map[string][]StatsValue `json:"top" nullable:"false" doc:"The most clicked values of each dimension that was asked for, from the series' beginning to its end, both rounded outwards to whole quarter hours: with minutes its clicks may be more than the series'."`
	LastUpdatedAt *time.Time              `json:"last_updated_at"`
	CompleteUntil *time.Time              `json:"complete_until" doc:"Every click before it is counted."`
}

// StatsPoint is a point as the API shows it.
type StatsPoint struct {
	Start    time.Time `json:"start"`
	Clicks   uint64    `json:"clicks"`
	Humans   uint64    `json:"humans"`
	Visitors *uint64   `json:"visitors" doc:"Different people; 0 for minutes; null where they are too many to count. Days of UTC are always counted."`
	Complete bool      `json:"complete" doc:"No click of this step is still on its way."`
}

// StatsValue is one value of a dimension.
type StatsValue struct {
	Value  string `json:"value" doc:"(other) sums up what came after the 200 most clicked values of a quarter hour or day."`
	Clicks uint64 `json:"clicks"`
}

func (a *api) statsOperation(d describer) *operation {
	return &operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: linksPath + "/{code}/stats", OperationID: "link-stats", Summary: "Count the clicks of a link",
			Parameters: []*huma.Param{
				codeParam(), domainParam(),
				queryParam("from", "The series begins with the step that holds this date. Default: 48 steps before to, 30 of days.", momentSchema()),
				queryParam("to", "The series ends before this date. Default: now.", momentSchema()),
				queryParam("interval", "The step of the series.", enumSchema("day", "hour", "quarter", "minute")),
				queryParam("tz", "The IANA time zone whose hours and days the steps are.", &huma.Schema{Type: huma.TypeString, Default: "UTC"}),
				queryParam("dimensions", "What top is to show, separated by commas: "+strings.Join(dimensionNames(), ", ")+".",
					&huma.Schema{Type: huma.TypeString}),
				queryParam("top", "The most values of a dimension. They are counted in whole quarter hours: those that a series of minutes begins and ends in count as a whole.", rangeSchema(1, clicks.MaxValues, 10)),
			},
			Responses: d.answers(200, "The statistics.", Stats{}, nil, 404),
		},
		scope: auth.StatsRead, serve: (*call).linkStats,
	}
}

func dimensionNames() []string {
	names := make([]string, clicks.NumDimensions)
	for d := range names {
		names[d] = clicks.Dimension(d).String()
	}
	return names
}

func momentSchema() *huma.Schema { return &huma.Schema{Type: huma.TypeString, Format: "date-time"} }

// rangeSchema is a whole number within bounds.
func rangeSchema(least, most float64, otherwise int) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most, Default: otherwise}
}

// statsQuestion is what a request for statistics asks.
type statsQuestion struct {
	scope      analytics.Scope
	step       analytics.Step
	dimensions []clicks.Dimension
	top        int
}

func (c *call) linkStats() error {
	q, err := c.statsQuestion()
	if err != nil {
		return err
	}
	k, ctx := q.scope.Key, c.r.Context()
	if err := c.api.links.Exists(ctx, c.who, k); err != nil {
		return err
	}
	totals, err := c.api.stats.Totals(ctx, analytics.Scope{Key: k}, c.now)
	if err != nil {
		return fmt.Errorf("statistics of %s: %w", k, err)
	}
	series, err := c.api.stats.Series(ctx, q.scope, q.step, c.now)
	var top [][]analytics.Row
	if err == nil && len(q.dimensions) > 0 {
		top, err = c.api.stats.Top(ctx, q.scope, q.top, c.now, q.dimensions...)
	}
	switch {
	case errors.Is(err, analytics.ErrRange):
		return badField("from", fmt.Sprintf("is out of what is kept; minutes are kept for %s", analytics.MinuteRetention))
	case err != nil:
		return fmt.Errorf("statistics of %s: %w", k, err)
	}
	s := shown(k, totals, series)
	for i, d := range q.dimensions {
		s.Top[d.String()] = shownRows(top[i])
	}
	return c.json(http.StatusOK, s)
}

// statsQuestion reads the request; what is wrong with it is a 400 before the link
// is looked for.
func (c *call) statsQuestion() (q statsQuestion, err error) {
	if q.scope.Key, err = c.key(); err != nil {
		return q, err
	}
	if q.top, err = c.integer("top"); err != nil {
		return q, err
	}
	if q.dimensions, err = c.dimensions(); err != nil {
		return q, err
	}
	return q, c.window(&q)
}

// dimensions returns those that the query lists, each once.
func (c *call) dimensions() (list []clicks.Dimension, err error) {
	if !c.query.Has("dimensions") {
		return nil, nil
	}
	var seen [clicks.NumDimensions]bool
	for name := range strings.SplitSeq(c.query.Get("dimensions"), ",") {
		d, ok := clicks.ParseDimension(name)
		switch {
		case !ok:
			return nil, badField("dimensions", fmt.Sprintf("%q is none of %s", clip(name), strings.Join(dimensionNames(), ", ")))
		case seen[d]:
			return nil, badField("dimensions", name+" is given more than once")
		}
		seen[d] = true
		list = append(list, d)
	}
	return list, nil
}

// window reads the part of time that the query asks for, in whole steps.
func (c *call) window(q *statsQuestion) error {
	name, err := c.choice("interval")
	if err != nil {
		return err
	}
	q.step, _ = analytics.ParseStep(name) // choice allows its names only
	zone := time.UTC
	if c.query.Has("tz") {
		if zone, err = analytics.ParseZone(c.query.Get("tz")); err != nil {
			return badField("tz", err.Error())
		}
	}
	from, to, err := c.between(c.now)
	if err != nil {
		return err
	}
	q.scope.Zone, q.scope.To = zone, q.step.Ceil(to, zone)
	if from.IsZero() {
		n := 48
		if q.step == analytics.Day {
			n = 30
		}
		from = q.step.Back(q.scope.To, n)
	}
	q.scope.From = q.step.Floor(from, zone)
	switch {
	case !q.scope.From.Before(q.scope.To):
		return badField("from", "must lie before to")
	case q.scope.To.Sub(q.scope.From)/q.step.Width() > analytics.MaxPoints:
		return badField("interval", fmt.Sprintf("would make more than %d points; take a longer one", analytics.MaxPoints))
	}
	return nil
}

// between returns the dates from and to of a query, which may be the zero time and
// otherwise. What lies beyond the years that clicks are counted in is refused.
func (c *call) between(otherwise time.Time) (from, to time.Time, err error) {
	if from, err = c.instant("from", time.Time{}); err != nil {
		return from, to, err
	}
	if to, err = c.instant("to", otherwise); err != nil {
		return from, to, err
	}
	switch {
	case c.query.Has("from") && !kept(from):
		return from, to, badField("from", "want a date from 1970 to 2089")
	case c.query.Has("to") && !kept(to):
		return from, to, badField("to", "want a date from 1970 to 2089")
	}
	return from, to, nil
}

// kept reports whether clicks of t can be counted.
func kept(t time.Time) bool { return 1970 <= t.Year() && t.Year() <= 2089 }

func shown(k link.Key, t analytics.Totals, series []analytics.Point) Stats {
	s := Stats{
		ShortCode: string(k.Code), TotalClicks: t.Clicks, HumanClicks: t.Humans, BotClicks: t.Clicks - t.Humans,
		Previews: t.Previews, VisitorDays: t.VisitorDays, Clicks24h: t.Clicks24h,
		LastClickedAt: instant(&t.LastClicked), LastUpdatedAt: instant(&t.LastUpdated), CompleteUntil: instant(&t.CompleteUntil),
		Series: make([]StatsPoint, len(series)), Top: map[string][]StatsValue{},
	}
	for i, p := range series {
		s.Series[i] = StatsPoint{Start: p.Start, Clicks: p.Clicks, Humans: p.Humans, Complete: p.Complete}
		if !p.Uncounted {
			s.Series[i].Visitors = &series[i].Visitors
		}
	}
	return s
}

func shownRows(rows []analytics.Row) []StatsValue {
	values := make([]StatsValue, len(rows))
	for i, r := range rows {
		values[i] = StatsValue{r.Value, r.Clicks}
	}
	return values
}
