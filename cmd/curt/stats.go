package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"curt.example/client"
)

type statsCmd struct {
	api
	format
	oneLink
	between

	Interval  string   `default:"day" help:"Step of the series: minute, quarter, hour or day."`
	TZ        string   `name:"tz" placeholder:"ZONE" help:"Time zone of hours and days, such as Europe/Berlin; default UTC."`
	Dimension []string `help:"Show the most clicked values of these: country, city, referrer_host, browser, os, device, …"`
	Top       *int     `help:"How many values of each dimension, 1 to 200; default 10."`
}

// between is a range of time, embedded in the commands about clicks.
type between struct {
	From string `help:"From this date on: 2026-01-31 (UTC) or 2026-01-31T12:00:00Z."`
	To   string `help:"Before this date."`
}

func (b between) times() (from, to time.Time, err error) {
	for _, f := range []struct {
		flag, text string
		at         *time.Time
	}{{"--from", b.From, &from}, {"--to", b.To, &to}} {
		if f.text == "" {
			continue
		}
		if *f.at, err = moment(f.text); err != nil {
			return from, to, usageError(fmt.Sprintf("%s: %v", f.flag, err))
		}
	}
	return from, to, nil
}

// Run prints the counters of one link, its series as a sparkline, and top values.
func (c *statsCmd) Run(ctx context.Context, t terminal) error {
	code, domain, err := target(c.Code)
	if err != nil {
		return err
	}
	from, to, err := c.times()
	if err != nil {
		return err
	}
	query := client.StatsQuery{Domain: domain, From: from, To: to, Interval: c.Interval, Zone: c.TZ, Dimensions: c.Dimension}
	if c.Top != nil {
		if query.Top = *c.Top; query.Top < 1 {
			return usageError("--top: want 1 or more")
		}
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	s, err := api.Stats(ctx, code, query)
	switch {
	case err != nil:
		return fmt.Errorf("statistics of %s: %w", code, err)
	case c.JSON:
		return printJSON(t.out, s)
	case c.CSV:
		return c.file(t, &s)
	}
	return c.table(t, &s)
}

func (c *statsCmd) table(t terminal, s *client.Stats) error {
	w := newTable(t.out)
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
	for _, v := range topValues(c.Dimension, s) {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\n", plain(v.Dimension), v.Clicks, plain(v.Value))
	}
	return w.Flush()
}

// topValue is a row of the file that --dimension makes.
type topValue struct {
	Dimension string `json:"dimension"`
	Value     string `json:"value"`
	Clicks    uint64 `json:"clicks"`
}

// topValues lists the values in the order in which the dimensions were asked for.
func topValues(dimensions []string, s *client.Stats) (list []topValue) {
	for _, d := range dimensions {
		for _, v := range s.Top[d] {
			list = append(list, topValue{d, v.Value, v.Clicks})
		}
	}
	return list
}

// file prints the one list that was asked for: values, or without dimensions the series.
func (c *statsCmd) file(t terminal, s *client.Stats) error {
	if len(c.Dimension) > 0 {
		return newSheet[topValue](t, c.format, nil).print(topValues(c.Dimension, s))
	}
	return newSheet[client.Point](t, c.format, nil).print(s.Series)
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
		return "", "", usageError(fmt.Sprintf("%q is neither a code nor a short URL", name))
	}
	return code, domain, nil
}

func when(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}
