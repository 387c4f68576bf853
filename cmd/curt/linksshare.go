package main

import (
	"context"
	"fmt"
	"time"

	"curt.example/client"
	"curt/internal/config"
)

type linksShareCmd struct {
	api
	oneLink

	For *config.Days `placeholder:"DURATION" help:"How long anybody may read them, such as 7d; default 30 days."`
	End bool         `help:"End every share of the link instead."`
}

// Run prints an address at which anybody may read the statistics of a link, or ends
// all that there are.
func (c *linksShareCmd) Run(ctx context.Context, t terminal) error {
	code, domain, err := target(c.Code)
	switch {
	case err != nil:
		return err
	case c.End && c.For != nil:
		return usageError("give --for or --end, not both")
	}
	var lifetime time.Duration // 0 = as long as the server gives
	if c.For != nil {
		if _, err := seconds("--for", *c.For); err != nil {
			return err
		}
		lifetime = time.Duration(*c.For)
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	if c.End {
		if err := api.EndShares(ctx, code, client.OnDomain(domain)); err != nil {
			return fmt.Errorf("end the shares of %s: %w", code, err)
		}
		t.note("nothing of %s is shared any more", code)
		return nil
	}
	made, err := api.Share(ctx, code, lifetime, client.OnDomain(domain))
	if err != nil {
		return fmt.Errorf("share the statistics of %s: %w", code, err)
	}
	_, err = fmt.Fprintln(t.out, made.URL)
	return err
}
