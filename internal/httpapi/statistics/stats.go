// Package statistics is the API of clicks: statistics of a link and of a workspace, daily clicks
// of several links, raw clicks, live counts, and shared statistics.
//
// Read this file first: it reads the query that most operations share. several.go has the
// statistics of many links, clicks.go raw clicks, live.go streams, share.go shares.
package statistics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/clicks"
	"curt/internal/httpapi/kernel"
	"curt/internal/httpapi/links"
	"curt/internal/link"
)

// Statistics are the operations on statistics and clicks, of a link or of many.
type Statistics struct {
	Links   *links.Links
	History analytics.History
	Live    *analytics.Live
	Shares  *auth.Shares
	Key     []byte // signs cursors, and names visitors

	filtering chan struct{} // a place for each request with a filter that is answered at once
}

// Operations are what the API can do with statistics.
func (st *Statistics) Operations(d kernel.Describer) []*kernel.Operation {
	st.filtering = make(chan struct{}, 1)
	return slices.Concat([]*kernel.Operation{st.statsOperation(d), st.clicksOperation(d), st.liveOperation(d)},
		st.workspaceOperations(d), []*kernel.Operation{st.seriesOperation(d)}, st.shareOperations(d))
}

// Stats are the statistics of one link.
type Stats struct {
	ShortCode string `json:"short_code"`
	Counted
}

// Counted is what statistics say, of a link or of many.
type Counted struct {
	TotalClicks   uint64                  `json:"total_clicks" doc:"Redirects of humans and bots, without previews."`
	HumanClicks   uint64                  `json:"human_clicks"`
	BotClicks     uint64                  `json:"bot_clicks"`
	Previews      uint64                  `json:"previews" doc:"HEAD requests and prefetches."`
	VisitorDays   uint64                  `json:"visitor_days" doc:"Daily unique visitors, summed over the period."`
	Clicks24h     uint64                  `json:"clicks_24h" doc:"The part of total_clicks in the last 24 hours."`
	LastClickedAt *time.Time              `json:"last_clicked_at"`
	Series        []StatsPoint            `json:"series" nullable:"false"`
	Top           map[string][]StatsValue `json:"top" nullable:"false" doc:"The top values of each requested dimension, over the range of the series rounded outwards to whole quarter hours; with minutes the sum may exceed that of the series."`
	LastUpdatedAt *time.Time              `json:"last_updated_at"`
	CompleteUntil *time.Time              `json:"complete_until" doc:"Every click before this time is counted."`
	Stale         bool                    `json:"stale" doc:"The statistics are unavailable or slow, and these are the last known ones, as of as_of; the series may end earlier than requested."`
	AsOf          *time.Time              `json:"as_of" doc:"When the oldest of these numbers was read, if stale; else null."`
	FilteredFrom  *time.Time              `json:"filtered_from" doc:"With a filter, all numbers are counted from the matching raw clicks between from and to, newest first. This is the start of the counted range, bounded by the retention of raw clicks and by some 100,000 clicks per request; the series is zero before it. null without a filter."`
}

// StatsPoint is a point as the API shows it.
type StatsPoint struct {
	Start    time.Time `json:"start"`
	Clicks   uint64    `json:"clicks"`
	Humans   uint64    `json:"humans"`
	Visitors *uint64   `json:"visitors" doc:"Unique visitors; 0 for minutes; null if there are too many to count. Always available for days in UTC."`
	Complete bool      `json:"complete" doc:"All clicks of this interval are counted."`
}

// StatsValue is one value of a dimension.
type StatsValue struct {
	Value  string `json:"value" doc:"(other) is the sum of all values beyond the top 200 of a quarter hour or day."`
	Clicks uint64 `json:"clicks"`
}

func (st *Statistics) statsOperation(d kernel.Describer) *kernel.Operation {
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: links.Path + "/{code}/stats", OperationID: "link-stats", Summary: "Get the statistics of a link",
			Parameters: slices.Concat([]*huma.Param{kernel.CodeParam(), kernel.DomainParam()}, statsParams(), filterParams("; see filtered_from")),
			Responses:  d.Answers(200, "The statistics.", Stats{}, nil, 404),
		},
		Action: auth.ReadStats, Serve: kernel.Reply(http.StatusOK, st.linkStats),
	}
}

// maxFilter is the most bytes of a value that clicks are to have.
const maxFilter = 256

// statsParams are what statistics can be asked.
func statsParams() []*huma.Param {
	return []*huma.Param{
		kernel.QueryParam("from", "The series starts with the interval that contains this date. Default: 48 intervals before to, 30 for days.", momentSchema()),
		kernel.QueryParam("to", "The series ends before this date. Default: now.", momentSchema()),
		kernel.QueryParam("interval", "The step of the series.", kernel.EnumSchema("day", "hour", "quarter", "minute")),
		kernel.QueryParam("tz", "The IANA time zone of hours and days.", &huma.Schema{Type: huma.TypeString, Default: "UTC"}),
		kernel.ShownWith("country", kernel.QueryParam("dimensions", "The dimensions in top, separated by commas: "+strings.Join(dimensionNames(), ", ")+".",
			&huma.Schema{Type: huma.TypeString})),
		kernel.QueryParam("top", "Maximum number of values per dimension, counted in whole quarter hours.", kernel.RangeSchema(1, clicks.MaxValues, 10)),
	}
}

// filterParams are what clicks can be asked to be; also ends what is said of each.
func filterParams(also string) (params []*huma.Param) {
	longest := maxFilter
	for _, name := range dimensionNames() {
		params = append(params, kernel.QueryParam(name, "Only clicks with this value"+also+".", &huma.Schema{Type: huma.TypeString, MaxLength: &longest}))
	}
	return append(params, kernel.QueryParam("bot", "Only clicks of bots (true) or of humans (false)"+also+".", &huma.Schema{Type: huma.TypeBoolean}))
}

func dimensionNames() []string {
	names := make([]string, clicks.NumDimensions)
	for d := range names {
		names[d] = clicks.Dimension(d).String()
	}
	return names
}

func momentSchema() *huma.Schema { return &huma.Schema{Type: huma.TypeString, Format: "date-time"} }

func (st *Statistics) linkStats(c *kernel.Call) (shown Stats, err error) {
	q, err := readQuestion(c)
	if err != nil {
		return shown, err
	}
	if q.scope.Key, err = st.Links.Key(c); err != nil {
		return shown, err
	}
	if err := st.Links.Service.Exists(c.R.Context(), c.Who, q.scope.Key); err != nil {
		return shown, err
	}
	shown.ShortCode = string(q.scope.Key.Code)
	shown.Counted, err = st.statistics(c, q)
	return shown, err
}

// statsLimit is how long statistics may take: from then on they are unavailable.
const statsLimit = 5 * time.Second

// statistics answers a question.
func (st *Statistics) statistics(c *kernel.Call, q statsQuestion) (Counted, error) {
	ctx, cancel := context.WithTimeoutCause(c.R.Context(), statsLimit, fmt.Errorf("%w: no response within %s", analytics.ErrUnavailable, statsLimit))
	defer cancel()
	ctx, age := analytics.WithAge(ctx)
	k := q.scope.Key
	totals, err := st.Links.Stats.Totals(ctx, analytics.Scope{Key: k}, c.Now)
	if err != nil {
		return Counted{}, fmt.Errorf("statistics of %s: %w", k, err)
	}
	if q.filter.Any() {
		return st.filtered(ctx, c, q, totals, age)
	}
	series, err := st.Links.Stats.Series(ctx, q.scope, q.step, c.Now)
	var top [][]analytics.Row
	if err == nil && len(q.dimensions) > 0 {
		top, err = st.Links.Stats.Top(ctx, q.scope, q.top, c.Now, q.dimensions...)
	}
	if err != nil {
		return Counted{}, outOfRange(k, err)
	}
	return shown(totals, series, q.dimensions, top).asOf(age), nil
}

// asOf says whether the numbers are earlier ones.
func (s Counted) asOf(age *analytics.Age) Counted {
	at := age.AsOf()
	s.Stale, s.AsOf = !at.IsZero(), kernel.Instant(&at)
	return s
}

// filtered answers a question that is about some of the clicks.
func (st *Statistics) filtered(ctx context.Context, c *kernel.Call, q statsQuestion, totals analytics.Totals, age *analytics.Age) (Counted, error) {
	select {
	case st.filtering <- struct{}{}:
		defer func() { <-st.filtering }()
	case <-ctx.Done():
		return Counted{}, context.Cause(ctx)
	}
	found, err := analytics.CountFiltered(ctx, st.History, q.scope, q.step, q.filter, q.top, totals, c.Now, q.dimensions...)
	if err != nil {
		return Counted{}, outOfRange(q.scope.Key, err)
	}
	s := shown(found.Totals, found.Points, q.dimensions, found.Top)
	s.FilteredFrom = &found.From
	return s.asOf(age), nil
}

// outOfRange tells a range that is not kept from statistics that cannot be read.
func outOfRange(k link.Key, err error) error {
	if errors.Is(err, analytics.ErrRange) {
		return kernel.BadField("from", fmt.Sprintf("out of range: minutes are kept for %s", analytics.MinuteRetention))
	}
	return fmt.Errorf("statistics of %s: %w", k, err)
}

func shown(t analytics.Totals, series []analytics.Point, dimensions []clicks.Dimension, top [][]analytics.Row) Counted {
	s := Counted{
		TotalClicks: t.Clicks, HumanClicks: t.Humans, BotClicks: t.Clicks - t.Humans,
		Previews: t.Previews, VisitorDays: t.VisitorDays, Clicks24h: t.Clicks24h,
		LastClickedAt: kernel.Instant(&t.LastClicked), LastUpdatedAt: kernel.Instant(&t.LastUpdated), CompleteUntil: kernel.Instant(&t.CompleteUntil),
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

// statsQuestion is what a request for statistics asks.
type statsQuestion struct {
	scope      analytics.Scope
	step       analytics.Step
	dimensions []clicks.Dimension
	top        int
	filter     analytics.Filter
}

// readQuestion reads the request; what is wrong with it is a 400 before the link
// is looked for.
func readQuestion(c *kernel.Call) (q statsQuestion, err error) {
	if q.top, err = c.Integer("top"); err != nil {
		return q, err
	}
	if q.dimensions, err = readDimensions(c); err != nil {
		return q, err
	}
	if q.filter, err = readFilter(c); err != nil {
		return q, err
	}
	return q, readWindow(c, &q)
}

// readDimensions returns those that the query lists, each once.
func readDimensions(c *kernel.Call) (list []clicks.Dimension, err error) {
	if !c.Query.Has("dimensions") {
		return nil, nil
	}
	var seen [clicks.NumDimensions]bool
	for name := range strings.SplitSeq(c.Query.Get("dimensions"), ",") {
		d, ok := clicks.ParseDimension(name)
		switch {
		case !ok:
			return nil, kernel.BadField("dimensions", fmt.Sprintf("%q is not one of %s", kernel.Clip(name), strings.Join(dimensionNames(), ", ")))
		case seen[d]:
			return nil, kernel.BadField("dimensions", name+" is given more than once")
		}
		seen[d] = true
		list = append(list, d)
	}
	return list, nil
}

// readWindow reads the part of time that the query asks for, in whole steps.
func readWindow(c *kernel.Call, q *statsQuestion) error {
	name, err := c.Choice("interval")
	if err != nil {
		return err
	}
	q.step, _ = analytics.ParseStep(name) // choice allows its names only
	zone := time.UTC
	if c.Query.Has("tz") {
		if zone, err = analytics.ParseZone(c.Query.Get("tz")); err != nil {
			return kernel.BadField("tz", err.Error())
		}
	}
	from, to, err := between(c, c.Now)
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
		return kernel.BadField("from", "must be before to")
	case q.scope.To.Sub(q.scope.From)/q.step.Width() > analytics.MaxPoints:
		return kernel.BadField("interval", fmt.Sprintf("would produce more than %d points; use a longer interval", analytics.MaxPoints))
	}
	return nil
}

// between returns the dates from and to of a query, which may be the zero time and
// otherwise. What lies beyond the years that clicks are counted in is refused.
func between(c *kernel.Call, otherwise time.Time) (from, to time.Time, err error) {
	if from, err = c.Instant("from", time.Time{}); err != nil {
		return from, to, err
	}
	if to, err = c.Instant("to", otherwise); err != nil {
		return from, to, err
	}
	switch {
	case c.Query.Has("from") && !kept(from):
		return from, to, kernel.BadField("from", "expected a date from 1970 to 2089")
	case c.Query.Has("to") && !kept(to):
		return from, to, kernel.BadField("to", "expected a date from 1970 to 2089")
	}
	return from, to, nil
}

// kept reports whether clicks of t can be counted.
func kept(t time.Time) bool { return 1970 <= t.Year() && t.Year() <= 2089 }

// readFilter returns what the clicks are to be.
func readFilter(c *kernel.Call) (f analytics.Filter, err error) {
	for d := range clicks.NumDimensions {
		name := clicks.Dimension(d).String()
		if !c.Query.Has(name) {
			continue
		}
		value := c.Query.Get(name)
		switch {
		case value == clicks.Other:
			return f, kernel.BadField(name, "is a sum of values and cannot be filtered by")
		case len(value) > maxFilter || !utf8.ValidString(value):
			return f, kernel.BadField(name, fmt.Sprintf("expected at most %d bytes of UTF-8", maxFilter))
		}
		if f.Values == nil {
			f.Values = map[clicks.Dimension]string{}
		}
		f.Values[clicks.Dimension(d)] = value
	}
	if c.Query.Has("bot") { // else the operation may not have it
		bot, err := c.Flag("bot")
		if err != nil {
			return f, err
		}
		f.Bot = &bot
	}
	return f, nil
}
