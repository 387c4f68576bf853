package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"curt/client"
)

type shortenCmd struct {
	api

	URL       []string      `arg:"" name:"url" help:"Long URLs; one line of output each."`
	Alias     string        `help:"Code of your choice, 3 to 64 of A-Z a-z 0-9 - _ (with one URL)."`
	ExpiresIn time.Duration `help:"How long the links live, such as 720h; default: for ever."`
	Redirect  int           `help:"301, 302, 307 or 308; default 302."`
	Title     string        `help:"Title of the link."`
	Tag       []string      `help:"Tags, separated by commas."`
	JSON      bool          `name:"json" help:"Print each link as JSON."`
}

// Run makes one link after the other and stops at the first that fails.
func (c *shortenCmd) Run(ctx context.Context, t terminal) error {
	if c.Alias != "" && len(c.URL) > 1 {
		return fmt.Errorf("--alias goes with one URL, %d given", len(c.URL))
	}
	if c.ExpiresIn%time.Second != 0 || c.ExpiresIn < 0 {
		return fmt.Errorf("--expires-in %s: want whole seconds", c.ExpiresIn)
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	for _, u := range c.URL {
		l, err := api.Create(ctx, client.NewLink{
			LongURL: u, CustomAlias: c.Alias, ExpiresIn: int64(c.ExpiresIn / time.Second),
			RedirectStatus: c.Redirect, Title: c.Title, Tags: c.Tag,
		})
		if err != nil {
			return fmt.Errorf("shorten %s: %w", u, err)
		}
		if err := c.print(t, l); err != nil {
			return err
		}
	}
	return nil
}

func (c *shortenCmd) print(t terminal, l client.Link) error {
	if c.JSON {
		return json.NewEncoder(t.out).Encode(l)
	}
	_, err := fmt.Fprintln(t.out, l.ShortURL)
	return err
}
