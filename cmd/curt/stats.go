package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"curt/client"
)

type statsCmd struct {
	api

	Code     string `arg:"" help:"Code of the link, or its short URL."`
	Interval string `default:"day" help:"Step of the series: minute, quarter, hour or day."`
	JSON     bool   `name:"json" help:"Print JSON."`
}

// Run prints the counters of one link and its series as a sparkline.
func (c *statsCmd) Run(ctx context.Context, t terminal) error {
	code, domain, err := target(c.Code)
	if err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	s, err := api.Stats(ctx, code, client.StatsQuery{Domain: domain, Interval: c.Interval})
	if err != nil {
		return fmt.Errorf("statistics of %s: %w", code, err)
	}
	if c.JSON {
		return json.NewEncoder(t.out).Encode(s)
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, row := range []struct {
		name  string
		value any
	}{
		{"clicks", s.TotalClicks},
		{"humans", s.HumanClicks},
		{"bots", s.BotClicks},
		{"previews", s.Previews},
		{"last 24 h", s.Clicks24h},
		{"visitor days", s.VisitorDays},
		{"last click", when(s.LastClickedAt)},
		{"by " + c.Interval, sparkline(s.Series)},
	} {
		_, _ = fmt.Fprintf(w, "%s\t%v\n", row.name, row.value) // Flush reports what failed
	}
	return w.Flush()
}

// target reads what names a link: its code, or its short URL, whose host then says
// on which domain.
func target(name string) (code, domain string, err error) {
	u, err := url.Parse(name)
	if err != nil || u.Host == "" {
		code = name
	} else {
		code, domain = strings.TrimPrefix(u.Path, "/"), u.Host
	}
	if code == "" || strings.Contains(code, "/") {
		return "", "", fmt.Errorf("%q is neither a code nor a short URL", name)
	}
	return code, domain, nil
}

func when(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}

// sparkline draws a series with the eight block characters; empty steps are dots.
func sparkline(points []client.Point) string {
	var highest uint64
	for _, p := range points {
		highest = max(highest, p.Clicks)
	}
	var b strings.Builder
	for _, p := range points {
		if p.Clicks == 0 {
			b.WriteByte('.')
			continue
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[(p.Clicks-1)*8/highest])
	}
	return b.String()
}
