package links

import (
	"context"
	"errors"
	"time"

	"curt.example/client"
	"curt/internal/cli"
)

// Clicks is the command "curt clicks show".
type Clicks struct {
	cli.API
	cli.Format
	cli.LinkArg
	cli.Between

	Limit int  `default:"100" help:"Maximum number of clicks to print."`
	All   bool `help:"Print all clicks that are kept."`
}

// Run walks the clicks page by page, newest first.
func (c *Clicks) Run(ctx context.Context, t cli.Terminal) error {
	code, domain, err := cli.ParseLink(c.Code)
	if err != nil {
		return err
	}
	query := client.ClicksQuery{Domain: domain}
	if query.From, query.To, err = c.Times(); err != nil {
		return err
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	damaged := false
	err = cli.PrintPages(cli.NewTable(t, c.Format, clickColumns()), c.Limit, c.All, 1000, "clicks of "+code, func(cursor string, limit int) ([]client.Click, string, error) {
		query.Cursor, query.Limit = cursor, limit
		page, err := api.Clicks(ctx, code, query)
		damaged = damaged || page.Damaged
		return page.Clicks, page.NextCursor, err
	})
	if damaged {
		t.Complain(errors.New("part of the click log is unreadable: clicks may be missing"))
	}
	return err
}

func clickColumns() []cli.Column[client.Click] {
	return []cli.Column[client.Click]{
		{Name: "TIME", Text: func(k *client.Click) string { return k.Time.Local().Format(time.DateTime) }},
		{Name: "OUTCOME", Text: func(k *client.Click) string { return k.Outcome }},
		{Name: "BY", Text: clickedBy},
		{Name: "COUNTRY", Text: func(k *client.Click) string { return k.Country }},
		{Name: "DEVICE", Text: func(k *client.Click) string { return k.Device }},
		{Name: "BROWSER", Text: func(k *client.Click) string { return k.Browser }},
		{Name: "FROM", Text: func(k *client.Click) string { return cli.Truncate(k.ReferrerHost, 40) }},
	}
}

func clickedBy(k *client.Click) string {
	switch {
	case k.Preview:
		return "preview"
	case !k.Bot:
		return "human"
	case k.BotName != "":
		return "bot " + cli.Truncate(k.BotName, 30)
	}
	return "bot"
}
