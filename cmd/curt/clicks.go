package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt.example/client"
)

type clicksCmd struct {
	Show    clicksShowCmd    `cmd:"" default:"withargs" help:"Show the clicks of a link one by one, newest first."`
	Verify  clicksVerifyCmd  `cmd:"" help:"Compare the statistics in ClickHouse with the clicks there, and these with Kafka."`
	Rebuild clicksRebuildCmd `cmd:"" help:"Correct the statistics in ClickHouse from the clicks there."`
	Replay  clicksReplayCmd  `cmd:"" help:"Bring clicks that ClickHouse does not have from Kafka."`
	Servers clicksServersCmd `cmd:"" help:"List the servers that statistics wait for: those that may hold clicks."`
	Forget  clicksForgetCmd  `cmd:"" help:"Wait no more for clicks of a server that will not come back."`
}

type clicksShowCmd struct {
	api
	format
	oneLink
	between

	Limit int  `default:"100" help:"The most clicks to print."`
	All   bool `help:"Print all that are kept."`
}

// Run walks the clicks page by page, newest first.
func (c *clicksShowCmd) Run(ctx context.Context, t terminal) error {
	code, domain, err := target(c.Code)
	if err != nil {
		return err
	}
	query := client.ClicksQuery{Domain: domain}
	if query.From, query.To, err = c.times(); err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	s := newSheet(t, c.format, clickColumns())
	damaged := false
	err = walk(c.Limit, c.All, 1000, func(cursor string, limit int) (int, string, error) {
		query.Cursor, query.Limit = cursor, limit
		page, err := api.Clicks(ctx, code, query)
		if err != nil {
			return 0, "", fmt.Errorf("clicks of %s: %w", code, err)
		}
		damaged = damaged || page.Damaged
		return len(page.Clicks), page.NextCursor, s.print(page.Clicks)
	})
	if damaged {
		t.complain(errors.New("part of the server's click log cannot be read: clicks may be missing"))
	}
	return err
}

func clickColumns() []column[client.Click] {
	return []column[client.Click]{
		{"TIME", func(k *client.Click) string { return k.Time.Local().Format(time.DateTime) }},
		{"OUTCOME", func(k *client.Click) string { return k.Outcome }},
		{"BY", clickedBy},
		{"COUNTRY", func(k *client.Click) string { return k.Country }},
		{"DEVICE", func(k *client.Click) string { return k.Device }},
		{"BROWSER", func(k *client.Click) string { return k.Browser }},
		{"FROM", func(k *client.Click) string { return shortened(k.ReferrerHost, 40) }},
	}
}

func clickedBy(k *client.Click) string {
	switch {
	case k.Preview:
		return "preview"
	case !k.Bot:
		return "human"
	case k.BotName != "":
		return "bot " + shortened(k.BotName, 30)
	}
	return "bot"
}
