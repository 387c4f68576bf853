package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"curt/internal/analytics"
	"curt/internal/clicks"
	"curt/internal/link"
)

// URLsStats are the statistics at /api/v1/urls/{code}/stats.
type URLsStats struct {
	TotalClicks  uint64   `json:"total_clicks"`
	Clicks24h    uint64   `json:"clicks_24h" doc:"Of total_clicks, those of the last 24 hours."`
	TopReferrers []string `json:"top_referrers" nullable:"false" doc:"Hosts, the most clicked first, at most ten."`
	TopCountries []string `json:"top_countries" nullable:"false" doc:"ISO 3166-1 codes, the most clicked first, at most ten."`
}

// V1URLsStats are the statistics at /v1/urls/{code}/stats and /shorten/{code}/stats.
type V1URLsStats struct {
	Clicks    uint64            `json:"clicks"`
	ByCountry map[string]uint64 `json:"by_country" doc:"By ISO 3166-1 code; clicks from unknown places are in none."`
	ByDay     []DayClicks       `json:"by_day" nullable:"false" doc:"The last 30 days in UTC, today last."`
}

// DayClicks are the clicks of one day.
type DayClicks struct {
	Day    string `json:"day" format:"date"`
	Clicks uint64 `json:"clicks"`
}

// V1LinksStats are the statistics at /v1/links/{code}/stats.
type V1LinksStats struct {
	TotalClicks   uint64     `json:"totalClicks"`
	LastUpdatedAt *time.Time `json:"lastUpdatedAt" doc:"When the count was last brought up to date."`
}

const (
	// topListed is how many names a list of the most clicked has.
	topListed = 10
	// daysListed is how many days are listed, as in the series by day.
	daysListed = 30
)

func (c *call) urlsStats() error {
	k, totals, err := c.totals()
	if err != nil {
		return err
	}
	// Two more, for what is no host.
	top, err := c.api.stats.Top(c.r.Context(), analytics.Scope{Key: k}, topListed+2, c.now, clicks.ReferrerHost, clicks.Country)
	if err != nil {
		return fmt.Errorf("most clicked of %s: %w", k, err)
	}
	return c.json(http.StatusOK, URLsStats{
		TotalClicks: totals.Clicks, Clicks24h: totals.Clicks24h, TopReferrers: names(top[0]), TopCountries: names(top[1]),
	})
}

// names returns the values of the rows that are names, in order.
func names(rows []analytics.Row) []string {
	list := []string{}
	for _, r := range rows {
		if r.Value != clicks.Direct && r.Value != clicks.Other && len(list) < topListed {
			list = append(list, r.Value)
		}
	}
	return list
}

func (c *call) v1URLsStats() error {
	k, totals, err := c.totals()
	if err != nil {
		return err
	}
	top, err := c.api.stats.Top(c.r.Context(), analytics.Scope{Key: k}, clicks.MaxValues, c.now, clicks.Country)
	if err != nil {
		return fmt.Errorf("countries of %s: %w", k, err)
	}
	days, err := c.days(c.r.Context(), k)
	if err != nil {
		return err
	}
	s := V1URLsStats{Clicks: totals.Clicks, ByCountry: make(map[string]uint64, len(top[0])), ByDay: days}
	for _, r := range top[0] {
		if r.Value != clicks.Other {
			s.ByCountry[r.Value] = r.Clicks
		}
	}
	return c.json(http.StatusOK, s)
}

// days returns the clicks of each of the last days.
func (c *call) days(ctx context.Context, k link.Key) ([]DayClicks, error) {
	const day = 24 * time.Hour
	end := c.now.UTC().Truncate(day).Add(day)
	series, err := c.api.stats.Series(ctx, analytics.Scope{Key: k, From: end.Add(-daysListed * day), To: end}, analytics.Day, c.now)
	if err != nil {
		return nil, fmt.Errorf("days of %s: %w", k, err)
	}
	list := make([]DayClicks, len(series))
	for i, p := range series {
		list[i] = DayClicks{Day: p.Start.Format(time.DateOnly), Clicks: p.Clicks}
	}
	return list, nil
}

func (c *call) v1LinksStats() error {
	_, totals, err := c.totals()
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, V1LinksStats{TotalClicks: totals.Clicks, LastUpdatedAt: instant(&totals.LastUpdated)})
}

// totals finds the link of the path, for a caller who may see it, and its sums.
func (c *call) totals() (k link.Key, t analytics.Totals, err error) {
	if k, err = c.key(); err != nil {
		return k, t, err
	}
	if err = c.api.links.Exists(c.r.Context(), c.who, k); err != nil {
		return k, t, err
	}
	if t, err = c.api.stats.Totals(c.r.Context(), analytics.Scope{Key: k}, c.now); err != nil {
		return k, t, fmt.Errorf("statistics of %s: %w", k, err)
	}
	return k, t, nil
}
