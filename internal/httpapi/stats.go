package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
	ShortCode string `json:"short_code"`
	Counted
}

// Counted is what statistics say, of a link or of many.
type Counted struct {
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
	FilteredFrom  *time.Time              `json:"filtered_from" doc:"With a filter, all numbers are of the clicks that pass it, between from and to. They are counted one by one, newest first: from here on, because raw clicks are kept no longer, or because the work of one answer ends after some 100,000; the series is zero before. null without a filter."`
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
			Parameters: slices.Concat([]*huma.Param{codeParam(), domainParam()}, statsParams(), filterParams("; see filtered_from")),
			Responses:  d.answers(200, "The statistics.", Stats{}, nil, 404),
		},
		action: auth.ReadStats, serve: (*call).linkStats,
	}
}

// maxFilter is the most bytes of a value that clicks are to have.
const maxFilter = 256

// statsParams are what statistics can be asked.
func statsParams() []*huma.Param {
	return []*huma.Param{
		queryParam("from", "The series begins with the step that holds this date. Default: 48 steps before to, 30 of days.", momentSchema()),
		queryParam("to", "The series ends before this date. Default: now.", momentSchema()),
		queryParam("interval", "The step of the series.", enumSchema("day", "hour", "quarter", "minute")),
		queryParam("tz", "The IANA time zone whose hours and days the steps are.", &huma.Schema{Type: huma.TypeString, Default: "UTC"}),
		shownWith("country", queryParam("dimensions", "What top is to show, separated by commas: "+strings.Join(dimensionNames(), ", ")+".",
			&huma.Schema{Type: huma.TypeString})),
		queryParam("top", "The most values of a dimension. They are counted in whole quarter hours: those that a series of minutes begins and ends in count as a whole.", rangeSchema(1, clicks.MaxValues, 10)),
	}
}

// filterParams are what clicks can be asked to be; also ends what is said of each.
func filterParams(also string) (params []*huma.Param) {
	longest := maxFilter
	for _, name := range dimensionNames() {
		params = append(params, queryParam(name, "Only clicks with this value"+also+".", &huma.Schema{Type: huma.TypeString, MaxLength: &longest}))
	}
	return append(params, queryParam("bot", "Only clicks of bots, or only those of people"+also+".", &huma.Schema{Type: huma.TypeBoolean}))
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

func (c *call) linkStats() error {
	q, err := c.statsQuestion()
	if err != nil {
		return err
	}
	if q.scope.Key, err = c.key(); err != nil {
		return err
	}
	if err := c.api.links.Exists(c.r.Context(), c.who, q.scope.Key); err != nil {
		return err
	}
	s, err := c.statistics(q)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, Stats{string(q.scope.Key.Code), s})
}

// statsLimit is how long statistics may take: from then on they are unavailable.
const statsLimit = 5 * time.Second

// statistics answers a question.
func (c *call) statistics(q statsQuestion) (Counted, error) {
	ctx, cancel := context.WithTimeoutCause(c.r.Context(), statsLimit, fmt.Errorf("%w: no answer within %s", analytics.ErrUnavailable, statsLimit))
	defer cancel()
	k := q.scope.Key
	totals, err := c.api.stats.Totals(ctx, analytics.Scope{Key: k}, c.now)
	if err != nil {
		return Counted{}, fmt.Errorf("statistics of %s: %w", k, err)
	}
	if q.filter.Any() {
		return c.sifted(ctx, q, totals)
	}
	series, err := c.api.stats.Series(ctx, q.scope, q.step, c.now)
	var top [][]analytics.Row
	if err == nil && len(q.dimensions) > 0 {
		top, err = c.api.stats.Top(ctx, q.scope, q.top, c.now, q.dimensions...)
	}
	if err != nil {
		return Counted{}, outOfRange(k, err)
	}
	return shown(totals, series, q.dimensions, top), nil
}

// sifted answers a question that is about some of the clicks.
func (c *call) sifted(ctx context.Context, q statsQuestion, totals analytics.Totals) (Counted, error) {
	select {
	case c.api.sifting <- struct{}{}:
		defer func() { <-c.api.sifting }()
	case <-ctx.Done():
		return Counted{}, context.Cause(ctx)
	}
	found, err := analytics.Sift(ctx, c.api.clicks, q.scope, q.step, q.filter, q.top, totals, c.now, q.dimensions...)
	if err != nil {
		return Counted{}, outOfRange(q.scope.Key, err)
	}
	s := shown(found.Totals, found.Points, q.dimensions, found.Top)
	s.FilteredFrom = &found.From
	return s, nil
}

// outOfRange tells a range that is not kept from statistics that cannot be read.
func outOfRange(k link.Key, err error) error {
	if errors.Is(err, analytics.ErrRange) {
		return badField("from", fmt.Sprintf("is out of what is kept; minutes are kept for %s", analytics.MinuteRetention))
	}
	return fmt.Errorf("statistics of %s: %w", k, err)
}

func shown(t analytics.Totals, series []analytics.Point, dimensions []clicks.Dimension, top [][]analytics.Row) Counted {
	s := Counted{
		TotalClicks: t.Clicks, HumanClicks: t.Humans, BotClicks: t.Clicks - t.Humans,
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
	for i, d := range dimensions {
		s.Top[d.String()] = shownRows(top[i])
	}
	return s
}

// shownRows are rows without what clicks kept of texts in releases of before: see clicks.Plain.
// What is the same without it is one row, in the place of its first.
func shownRows(rows []analytics.Row) []StatsValue {
	values, at := make([]StatsValue, 0, len(rows)), make(map[string]int, len(rows))
	for _, r := range rows {
		value := clicks.Plain(r.Value)
		i, there := at[value]
		switch {
		case value == "" && r.Value != "": // of nothing else
		case there:
			values[i].Clicks += r.Clicks
		default:
			at[value] = len(values)
			values = append(values, StatsValue{value, r.Clicks})
		}
	}
	slices.SortStableFunc(values, func(a, b StatsValue) int { return cmp.Compare(b.Clicks, a.Clicks) })
	return values
}
