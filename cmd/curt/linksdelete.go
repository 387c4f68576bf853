package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"curt.example/client"
)

type linksDeleteCmd struct {
	api

	Codes     []string `arg:"" name:"code" help:"Codes of links, or their short URLs."`
	Yes       bool     `short:"y" help:"Do not ask."`
	IfVersion *uint64  `help:"Only while the link has this version."`
}

// Run deletes one link after the other; one that fails does not save the others.
func (c *linksDeleteCmd) Run(ctx context.Context, t terminal) error {
	if err := t.confirm(ctx, c.Yes, "Delete "+strings.Join(c.Codes, ", ")+" for good? Nobody can have the code again."); err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	count := &tally{t: t, all: len(c.Codes)}
	err = each(ctx, count, c.Codes, func(name string) error {
		code, domain, err := target(name)
		if err != nil {
			return err
		}
		options := []client.LinkOption{client.OnDomain(domain)}
		if c.IfVersion != nil {
			options = append(options, client.IfVersion(*c.IfVersion))
		}
		if err := api.Delete(ctx, code, options...); err != nil {
			return fmt.Errorf("delete %s: %w", name, err)
		}
		t.note("deleted %s", name)
		return nil
	})
	return errors.Join(err, count.end())
}
