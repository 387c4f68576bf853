package links

import (
	"context"
	"fmt"
	"strings"

	"curt.example/client"
	"curt/internal/cli"
)

// Stats is the command "curt stats".
type Stats struct {
	cli.API
	cli.Format
	cli.LinkArg
	cli.Between

	Interval  string   `default:"day" help:"Interval of the series: minute, quarter, hour or day."`
	TZ        string   `name:"tz" placeholder:"ZONE" help:"Time zone of hours and days, such as Europe/Berlin; default UTC."`
	Dimension []string `help:"Show the top values of these dimensions: country, city, referrer_host, browser, os, device, …"`
	Top       *int     `help:"Values per dimension, 1 to 200; default 10."`
}

// Run prints the counters of one link, its series as a sparkline, and top values.
func (c *Stats) Run(ctx context.Context, t cli.Terminal) error {
	code, domain, err := cli.ParseLink(c.Code)
	if err != nil {
		return err
	}
	from, to, err := c.Times()
	if err != nil {
		return err
	}
	query := client.StatsQuery{Domain: domain, From: from, To: to, Interval: c.Interval, Zone: c.TZ, Dimensions: c.Dimension}
	if c.Top != nil {
		if query.Top = *c.Top; query.Top < 1 {
			return cli.UsageError("--top: expected 1 or more")
		}
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	s, err := api.Stats(ctx, code, query)
	switch {
	case err != nil:
		return fmt.Errorf("statistics of %s: %w", code, err)
	case c.JSON:
		return cli.PrintJSON(t.Out, s)
	case c.CSV:
		return c.file(t, &s)
	}
	return c.table(t, &s)
}

func (c *Stats) table(t cli.Terminal, s *client.Stats) error {
	w := cli.NewTabwriter(t.Out)
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
		{"last click", cli.When(s.LastClickedAt)},
		{"by " + c.Interval, sparkline(s.Series)},
	} {
		_, _ = fmt.Fprintf(w, "%s\t%v\n", row.name, row.value) // Flush reports what failed
	}
	for _, v := range topValues(c.Dimension, s) {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\n", cli.Plain(v.Dimension), v.Clicks, cli.Plain(v.Value))
	}
	return w.Flush()
}

// topValue is a row of the output with --dimension.
type topValue struct {
	Dimension string `json:"dimension"`
	Value     string `json:"value"`
	Clicks    uint64 `json:"clicks"`
}

// topValues lists the values in the order of the requested dimensions.
func topValues(dimensions []string, s *client.Stats) (list []topValue) {
	for _, d := range dimensions {
		for _, v := range s.Top[d] {
			list = append(list, topValue{d, v.Value, v.Clicks})
		}
	}
	return list
}

// file prints one list as JSON Lines or CSV: top values, or without dimensions the series.
func (c *Stats) file(t cli.Terminal, s *client.Stats) error {
	if len(c.Dimension) > 0 {
		return cli.NewTable[topValue](t, c.Format, nil).Print(topValues(c.Dimension, s))
	}
	return cli.NewTable[client.Point](t, c.Format, nil).Print(s.Series)
}

// sparklineWidth fits into 80 columns together with its name.
const sparklineWidth = 60

// sparkline draws a series with the eight block characters; empty steps are dots.
// Neighbours in a series that is too long are summed.
func sparkline(points []client.Point) string {
	clicks := make([]uint64, min(len(points), sparklineWidth))
	for i := range points {
		clicks[i*len(clicks)/len(points)] += points[i].Clicks
	}
	var highest uint64
	for _, n := range clicks {
		highest = max(highest, n)
	}
	var b strings.Builder
	for _, n := range clicks {
		if n == 0 {
			b.WriteByte('.')
			continue
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[(n*8-1)/highest])
	}
	return b.String()
}
