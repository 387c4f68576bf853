package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"curt.example/client"
	"curt/internal/weburl"
)

// switchFlags choose the links that are switched; embedded in disable and enable.
type switchFlags struct {
	api

	Codes       []string `arg:"" optional:"" name:"code" help:"Codes of links, or their short URLs."`
	Destination string   `placeholder:"HOST" help:"Every link whose URL or fallback leads to this host or one below it."`
	Tag         string   `help:"Every link with this tag."`
	DryRun      bool     `help:"Print the links, and change nothing."`
	Yes         bool     `short:"y" help:"Do not ask."`
}

type linksDisableCmd struct{ switchFlags }

// Run switches links off.
func (c *linksDisableCmd) Run(ctx context.Context, t terminal) error {
	return c.run(ctx, t, "disable", "active", "disabled")
}

type linksEnableCmd struct{ switchFlags }

// Run switches links on.
func (c *linksEnableCmd) Run(ctx context.Context, t terminal) error {
	return c.run(ctx, t, "enable", "disabled", "active")
}

// run shows the links that are meant and gives them another status. One that fails, or is
// not there, does not save the others.
func (c *switchFlags) run(ctx context.Context, t terminal, verb, from, to string) error {
	search := c.Destination != "" || c.Tag != ""
	if search == (len(c.Codes) > 0) {
		return usageError("name codes, or choose links with --destination or --tag")
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	var links []client.Link
	count := &tally{t: t, all: len(c.Codes)}
	if search {
		links, err = c.find(ctx, api, from)
		count.all = len(links)
	} else {
		links, err = c.get(ctx, api, count)
	}
	if err != nil {
		return err
	}
	if c.DryRun || (search && !c.Yes) {
		if err := newSheet(t, format{}, linkColumns()).print(links); err != nil {
			return err
		}
	}
	if c.DryRun || len(links) == 0 {
		t.note("%d links to %s", len(links), verb)
		return count.end()
	}
	if search {
		if err := t.confirm(ctx, c.Yes, fmt.Sprintf("%s%s %d links?", strings.ToUpper(verb[:1]), verb[1:], len(links))); err != nil {
			return err
		}
	}
	err = give(ctx, t, api, links, count, verb, to)
	return errors.Join(err, count.end())
}

// give changes the status of links.
func give(ctx context.Context, t terminal, api *client.Client, links []client.Link, count *tally, verb, status string) error {
	return each(ctx, count, links, func(l client.Link) error {
		if _, err := api.Update(ctx, l.ShortCode, map[string]any{"status": status}, client.OnDomain(l.Domain)); err != nil {
			return fmt.Errorf("%s %s: %w", verb, l.ShortURL, err)
		}
		t.note("%sd %s", verb, l.ShortURL)
		return nil
	})
}

// get returns the links that are named and there.
func (c *switchFlags) get(ctx context.Context, api *client.Client, count *tally) (links []client.Link, err error) {
	err = each(ctx, count, c.Codes, func(name string) error {
		code, domain, err := target(name)
		if err != nil {
			return err
		}
		l, err := api.Get(ctx, code, client.OnDomain(domain))
		if err != nil {
			return fmt.Errorf("get %s: %w", name, err)
		}
		links = append(links, l)
		return nil
	})
	return links, err
}

// find returns the links of a status that are chosen. The search finds words; whether
// they are the host is seen here.
func (c *switchFlags) find(ctx context.Context, api *client.Client, status string) ([]client.Link, error) {
	query := client.ListQuery{Tag: c.Tag, Status: status}
	host := ""
	if c.Destination != "" {
		var err error
		if host, err = weburl.ParseHost(c.Destination); err != nil {
			return nil, usageError(fmt.Sprintf("--destination: %q is no host", c.Destination))
		}
		query.Text = host
	}
	var links []client.Link
	err := walk(1, true, 100, func(cursor string, limit int) (int, string, error) {
		query.Cursor, query.Limit = cursor, limit
		page, err := api.Find(ctx, query)
		if err != nil {
			return 0, "", fmt.Errorf("find links: %w", err)
		}
		for i := range page.Links {
			l := &page.Links[i]
			if host == "" || leadsTo(l.LongURL, host) || (l.FallbackURL != nil && leadsTo(*l.FallbackURL, host)) {
				links = append(links, *l)
			}
		}
		return len(page.Links), page.NextCursor, nil
	})
	return links, err
}

// leadsTo reports whether a URL in normal form leads to a host or one below it.
func leadsTo(long, host string) bool {
	u, err := url.Parse(long)
	if err != nil {
		return false
	}
	name := strings.TrimSuffix(u.Hostname(), ".")
	return name == host || strings.HasSuffix(name, "."+host)
}
