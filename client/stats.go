package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Stats are the statistics of one link.
type Stats struct {
	ShortCode string `json:"short_code"`
	Counted
}

// WorkspaceStats are the statistics of all links of a workspace together.
type WorkspaceStats struct {
	WorkspaceID string `json:"workspace_id"`
	// Orphans are requests for codes that no link has, on the whole server; nil for keys
	// without the scope admin.
	Orphans *OrphanStats `json:"orphans"`
	Counted
}

// OrphanStats are requests that no link answered.
type OrphanStats struct {
	TotalClicks uint64 `json:"total_clicks"`
	Clicks24h   uint64 `json:"clicks_24h"`
}

// Counted is what statistics say, of a link or of many.
type Counted struct {
	TotalClicks   uint64     `json:"total_clicks"`
	HumanClicks   uint64     `json:"human_clicks"`
	BotClicks     uint64     `json:"bot_clicks"`
	Previews      uint64     `json:"previews"`
	VisitorDays   uint64     `json:"visitor_days"`
	Clicks24h     uint64     `json:"clicks_24h"`
	LastClickedAt *time.Time `json:"last_clicked_at"`
	Series        []Point    `json:"series"`
	// Top holds the most clicked values of each dimension that was asked for.
	Top           map[string][]Value `json:"top"`
	LastUpdatedAt *time.Time         `json:"last_updated_at"`
	CompleteUntil *time.Time         `json:"complete_until"`
	// Stale says that statistics were unavailable or slow, and that these are the last known ones,
	// read at AsOf.
	Stale bool       `json:"stale"`
	AsOf  *time.Time `json:"as_of"`
	// FilteredFrom is set with Only and Bot: all numbers are of the clicks that pass, from
	// here on.
	FilteredFrom *time.Time `json:"filtered_from"`
}

// Point is one interval of a series.
type Point struct {
	Start    time.Time `json:"start"`
	Clicks   uint64    `json:"clicks"`
	Humans   uint64    `json:"humans"`
	Visitors *uint64   `json:"visitors"` // nil where they are too many to count
	Complete bool      `json:"complete"`
}

// Value is one value of a dimension; "(other)" sums up the rare ones.
type Value struct {
	Value  string `json:"value"`
	Clicks uint64 `json:"clicks"`
}

// StatsQuery chooses a range and its steps; zero fields leave it to the server.
type StatsQuery struct {
	Domain     string // the link's host; "" = the server's default domain
	From, To   time.Time
	Interval   string   // minute, quarter, hour or day
	Zone       string   // IANA name of the time zone of hours and days, such as Europe/Berlin
	Dimensions []string // what Top is to show: country, city, referrer_host, …
	Top        int      // values of each dimension, 1 to 200

	// Only keeps the clicks that have these values, by dimension, and Bot those of bots or
	// of people; nil = all. Statistics of a workspace take neither.
	Only map[string]string
	Bot  *bool
}

// values are the parameters of a query.
func (query *StatsQuery) values() url.Values {
	q := url.Values{}
	setTimes(q, query.From, query.To)
	setTexts(q, query.Only)
	setTexts(q, map[string]string{"interval": query.Interval, "tz": query.Zone, "dimensions": strings.Join(query.Dimensions, ",")})
	if query.Top > 0 {
		q.Set("top", strconv.Itoa(query.Top))
	}
	if query.Bot != nil {
		q.Set("bot", strconv.FormatBool(*query.Bot))
	}
	return q
}

// Stats returns the statistics of a link.
func (c *Client) Stats(ctx context.Context, code string, query StatsQuery) (Stats, error) {
	q := query.values()
	setTexts(q, map[string]string{"domain": query.Domain})
	var s Stats
	err := c.call(ctx, http.MethodGet, linkPath(code)+"/stats", q, nil, &s)
	return s, err
}

// WorkspaceStats returns the statistics of all links of a workspace; "" = that of the key.
// The Domain of the query means nothing.
func (c *Client) WorkspaceStats(ctx context.Context, workspace string, query StatsQuery) (WorkspaceStats, error) {
	q := query.values()
	setTexts(q, map[string]string{"workspace_id": workspace})
	var s WorkspaceStats
	err := c.call(ctx, http.MethodGet, "/api/v1/stats", q, nil, &s)
	return s, err
}

// LinksSeries are the days of many links.
type LinksSeries struct {
	Start  time.Time    `json:"start"` // where the first day begins, UTC
	Series []LinkSeries `json:"series"`
}

// LinkSeries are the clicks of one link on each day; the last is today.
type LinkSeries struct {
	Domain    string   `json:"domain"`
	ShortCode string   `json:"short_code"`
	Clicks    []uint64 `json:"clicks"`
}

// LinksSeries returns the days of up to 100 links, each a CODE or a DOMAIN/CODE; 0 days
// leaves their number to the server. Links that there are not are not in it.
func (c *Client) LinksSeries(ctx context.Context, links []string, days int) (LinksSeries, error) {
	q := url.Values{}
	setTexts(q, map[string]string{"links": strings.Join(links, ",")})
	if days > 0 {
		q.Set("days", strconv.Itoa(days))
	}
	var s LinksSeries
	err := c.call(ctx, http.MethodGet, "/api/v1/stats/links", q, nil, &s)
	return s, err
}

// setTimes sets the parameters from and to that are given.
func setTimes(q url.Values, from, to time.Time) {
	for name, t := range map[string]time.Time{"from": from, "to": to} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
}

// setTexts sets the parameters that are not empty.
func setTexts(q url.Values, texts map[string]string) {
	for name, v := range texts {
		if v != "" {
			q.Set(name, v)
		}
	}
}
