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
	"curt/internal/link"
)

const (
	statsPath = "/api/v1/stats"

	// maxSeriesLinks is a page of links, and maxSeriesDays a quarter: a link costs a
	// question of some 0.1 ms, and 1 µs for each day.
	maxSeriesLinks = 100
	maxSeriesDays  = 92
)

// LinksSeries are the days of many links, for small pictures of each.
type LinksSeries struct {
	Start  time.Time    `json:"start" doc:"Where the first day begins."`
	Series []LinkSeries `json:"series" nullable:"false" doc:"In the order of the question, without links that there are not."`
}

// LinkSeries are the days of one link.
type LinkSeries struct {
	Domain    string   `json:"domain"`
	ShortCode string   `json:"short_code"`
	Clicks    []uint64 `json:"clicks" nullable:"false" doc:"Of each day (UTC), oldest first; the last day is today."`
}

func (a *api) seriesOperations(d describer) []*operation {
	return []*operation{{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: statsPath + "/links", OperationID: "links-series", Summary: "Show the days of many links",
			Parameters: []*huma.Param{
				shownWith("manual,go.example/none", queryParam("links", fmt.Sprintf("The links, at most %d, separated by commas: CODE on the default domain, DOMAIN/CODE on another.", maxSeriesLinks),
					&huma.Schema{Type: huma.TypeString})),
				queryParam("days", "How many days, of which today is the last.", rangeSchema(1, maxSeriesDays, 14)),
			},
			Responses: d.answers(200, "The days of each link.", LinksSeries{}, nil),
		},
		action: auth.ReadStats, serve: (*call).linksSeries,
	}}
}

func (c *call) linksSeries() error {
	days, err := c.integer("days")
	if err != nil {
		return err
	}
	keys, err := c.listed()
	if err != nil {
		return err
	}
	to := analytics.Day.Ceil(c.now, time.UTC)
	from := analytics.Day.Back(to, days)
	list := LinksSeries{Start: from, Series: []LinkSeries{}}
	for _, k := range keys {
		switch err := c.api.links.Exists(c.r.Context(), c.who, k); {
		case errors.Is(err, link.ErrNotFound):
			continue
		case err != nil:
			return err
		}
		points, err := c.api.stats.Series(c.r.Context(), analytics.Scope{Key: k, From: from, To: to}, analytics.Day, c.now)
		if err != nil {
			return fmt.Errorf("days of %s: %w", k, err)
		}
		s := LinkSeries{Domain: c.api.sites.name(k.Domain), ShortCode: string(k.Code), Clicks: make([]uint64, len(points))}
		for i := range points {
			s.Clicks[i] = points[i].Clicks
		}
		list.Series = append(list.Series, s)
	}
	return c.json(http.StatusOK, list)
}

// listed returns the keys that the parameter links names.
func (c *call) listed() ([]link.Key, error) {
	if !c.query.Has("links") {
		return nil, nil
	}
	names := strings.Split(c.query.Get("links"), ",")
	if len(names) > maxSeriesLinks {
		return nil, badField("links", fmt.Sprintf("want at most %d", maxSeriesLinks))
	}
	keys := make([]link.Key, 0, len(names))
	for _, name := range names {
		domain, code, named := strings.Cut(name, "/")
		if !named {
			domain, code = "", name
		}
		if !link.ValidCode(code) || named && domain == "" {
			return nil, badField("links", fmt.Sprintf("%q is no CODE and no DOMAIN/CODE", clip(name)))
		}
		if d, ours := c.api.links.Domain(domain); ours {
			keys = append(keys, link.Key{Domain: d, Code: link.Code(code)})
		}
	}
	return keys, nil
}
