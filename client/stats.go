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
	ShortCode     string     `json:"short_code"`
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
}

// Stats returns the statistics of a link.
func (c *Client) Stats(ctx context.Context, code string, query StatsQuery) (Stats, error) {
	q := url.Values{}
	setTimes(q, query.From, query.To)
	setTexts(q, map[string]string{
		"domain": query.Domain, "interval": query.Interval, "tz": query.Zone, "dimensions": strings.Join(query.Dimensions, ","),
	})
	if query.Top > 0 {
		q.Set("top", strconv.Itoa(query.Top))
	}
	var s Stats
	err := c.call(ctx, http.MethodGet, linkPath(code)+"/stats", q, nil, &s)
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
