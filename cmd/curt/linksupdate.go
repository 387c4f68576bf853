package main

import (
	"context"
	"fmt"

	"curt.example/client"
)

type linksUpdateCmd struct {
	api
	oneLink

	changeFlags
	IfVersion *uint64 `help:"Only while it has this version."`
	JSON      bool    `name:"json" help:"Print the link as JSON."`
}

// Run changes what is named and prints the link as it is then.
func (c *linksUpdateCmd) Run(ctx context.Context, t terminal) error {
	code, domain, err := target(c.Code)
	if err != nil {
		return err
	}
	patch, err := c.patch()
	if err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	options := []client.LinkOption{client.OnDomain(domain)}
	if c.IfVersion != nil {
		options = append(options, client.IfVersion(*c.IfVersion))
	}
	l, err := api.Update(ctx, code, patch, options...)
	if err != nil {
		return fmt.Errorf("update %s: %w", code, err)
	}
	return printLink(t, c.JSON, &l)
}
