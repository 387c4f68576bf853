package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
)

// Statistics answers what links were clicked. It is called by many goroutines at
// once. An error means that the counts cannot be known now; it wraps link.ErrUnavailable
// when a retry may help.
type Statistics interface {
	// Clicks returns the total clicks of each key, in order; 0 for a key that was
	// never clicked.
	Clicks(ctx context.Context, keys []link.Key) ([]uint64, error)

	// Report returns everything about one key, with a point for every step of the
	// window, clicked or not.
	Report(ctx context.Context, key link.Key, w Window) (Report, error)
}

// Interval is the length of one point of a series. Its values are the words of
// the API.
type Interval string

// The intervals of a series, cut in UTC.
const (
	Minute  Interval = "minute"
	Quarter Interval = "quarter" // of an hour
	Hour    Interval = "hour"
	Day     Interval = "day"
)

// Step returns the length of the interval.
func (i Interval) Step() time.Duration {
	switch i {
	case Minute:
		return time.Minute
	case Quarter:
		return 15 * time.Minute
	case Hour:
		return time.Hour
	case Day:
		return 24 * time.Hour
	}
	return 0
}

// Window is the part of time that a report's series covers: every step from the
// one that holds From to the last that begins before To. Both lie on a step.
type Window struct {
	From, To time.Time
	Interval Interval
	Now      time.Time // clicks_24h ends here
}

// Report is the statistics of one link.
type Report struct {
	TotalClicks   uint64    // answered with the link's own redirect, by people and bots, without Previews
	HumanClicks   uint64    // of TotalClicks
	BotClicks     uint64    // of TotalClicks
	Previews      uint64    // HEAD and prefetch
	VisitorDays   uint64    // different visitors of each day, added up
	Clicks24h     uint64    // of TotalClicks, in the 24 hours before Window.Now
	LastClickedAt time.Time // zero = never
	Series        []Point
	LastUpdatedAt time.Time // when the counts were last brought up to date
	CompleteUntil time.Time // every click before it is counted
}

// Point is one step of a series.
type Point struct {
	Start    time.Time
	Clicks   uint64
	Humans   uint64
	Visitors uint64
	Complete bool // no click of this step is still on its way
}

// maxPoints bounds a series. Minutes are kept for 48 hours: 2,880; thirty years
// of days fit too.
const maxPoints = 12_000

// Stats is a report as the API shows it.
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
				queryParam("interval", "The step of the series, in UTC.", enumSchema(string(Day), string(Hour), string(Quarter), string(Minute))),
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
	w, err := c.window()
	if err != nil {
		return err
	}
	if err := c.api.links.Exists(c.r.Context(), c.who, k); err != nil {
		return err
	}
	report, err := c.api.stats.Report(c.r.Context(), k, w)
	if err != nil {
		return fmt.Errorf("statistics of %s: %w", k, err)
	}
	return c.json(http.StatusOK, report.shown(k))
}

// window returns the part of time that the query asks for.
func (c *call) window() (Window, error) {
	name, err := c.choice("interval")
	if err != nil {
		return Window{}, err
	}
	w := Window{Interval: Interval(name), Now: c.now.UTC()}
	step := w.Interval.Step()
	to, err := c.instant("to", w.Now)
	if err != nil {
		return Window{}, err
	}
	w.To = ceil(to, step)
	steps := 48
	if w.Interval == Day {
		steps = 30
	}
	from, err := c.instant("from", w.To.Add(-time.Duration(steps)*step))
	if err != nil {
		return Window{}, err
	}
	w.From = from.Truncate(step)
	switch {
	case !w.From.Before(w.To):
		return Window{}, badField("from", "must lie before to")
	case w.To.Sub(w.From)/step > maxPoints:
		return Window{}, badField("interval", fmt.Sprintf("would make more than %d points; take a longer one", maxPoints))
	}
	return w, nil
}

// ceil rounds up to a whole step. Steps of time.Truncate are counted from year 1,
// which is midnight UTC, so that days are UTC days.
func ceil(t time.Time, step time.Duration) time.Time {
	if floor := t.Truncate(step); floor.Before(t) {
		return floor.Add(step)
	}
	return t
}

func (r *Report) shown(k link.Key) Stats {
	s := Stats{
		ShortCode: string(k.Code), TotalClicks: r.TotalClicks, HumanClicks: r.HumanClicks, BotClicks: r.BotClicks,
		Previews: r.Previews, VisitorDays: r.VisitorDays, Clicks24h: r.Clicks24h,
		LastClickedAt: instant(&r.LastClickedAt), LastUpdatedAt: instant(&r.LastUpdatedAt), CompleteUntil: instant(&r.CompleteUntil),
		Series: make([]StatsPoint, len(r.Series)),
	}
	for i, p := range r.Series {
		s.Series[i] = StatsPoint(p)
	}
	return s
}
