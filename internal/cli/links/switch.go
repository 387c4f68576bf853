package links

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"curt.example/client"
	"curt/internal/cli"
	"curt/internal/weburl"
)

// switchFlags select links; embedded in disable and enable.
type switchFlags struct {
	cli.API

	Codes       []string `arg:"" optional:"" name:"code" help:"Codes of links, or their short URLs."`
	Destination string   `placeholder:"HOST" help:"All links whose destination or fallback is on this host or a subdomain."`
	Tag         string   `help:"All links with this tag."`
	DryRun      bool     `help:"Only print the links; change nothing."`
	Yes         bool     `short:"y" help:"Skip the confirmation."`
}

// Disable is the command "curt links disable".
type Disable struct{ switchFlags }

// Run disables links.
func (c *Disable) Run(ctx context.Context, t cli.Terminal) error {
	return c.run(ctx, t, "disable", "active", "disabled")
}

// Enable is the command "curt links enable".
type Enable struct{ switchFlags }

// Run enables links.
func (c *Enable) Run(ctx context.Context, t cli.Terminal) error {
	return c.run(ctx, t, "enable", "disabled", "active")
}

// run prints the selected links and changes their status. One that fails or does not exist
// does not stop it.
func (c *switchFlags) run(ctx context.Context, t cli.Terminal, verb, from, to string) error {
	search := c.Destination != "" || c.Tag != ""
	if search == (len(c.Codes) > 0) {
		return cli.UsageError("expected codes, --destination or --tag")
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	var links []client.Link
	count := cli.NewTally(t, len(c.Codes))
	if search {
		links, err = c.find(ctx, api, from)
		count.All = len(links)
	} else {
		links, err = c.get(ctx, api, count)
	}
	if err != nil {
		return err
	}
	if c.DryRun || (search && !c.Yes) {
		if err := cli.NewTable(t, cli.Format{}, linkColumns()).Print(links); err != nil {
			return err
		}
	}
	if c.DryRun || len(links) == 0 {
		t.Note("%d links to %s", len(links), verb)
		return count.End()
	}
	if search {
		if err := t.Confirm(ctx, c.Yes, fmt.Sprintf("%s%s %d links?", strings.ToUpper(verb[:1]), verb[1:], len(links))); err != nil {
			return err
		}
	}
	err = setStatus(ctx, t, api, links, count, verb, to)
	return errors.Join(err, count.End())
}

// setStatus changes the status of links.
func setStatus(ctx context.Context, t cli.Terminal, api *client.Client, links []client.Link, count *cli.Tally, verb, status string) error {
	return cli.Each(ctx, count, links, func(l client.Link) error {
		if _, err := api.Update(ctx, l.ShortCode, map[string]any{"status": status}, client.OnDomain(l.Domain)); err != nil {
			return fmt.Errorf("%s %s: %w", verb, l.ShortURL, err)
		}
		t.Note("%sd %s", verb, l.ShortURL)
		return nil
	})
}

// get returns the named links that exist.
func (c *switchFlags) get(ctx context.Context, api *client.Client, count *cli.Tally) (links []client.Link, err error) {
	err = cli.Each(ctx, count, c.Codes, func(name string) error {
		code, domain, err := cli.ParseLink(name)
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

// find returns the selected links with a status. The search finds words; the host is compared
// here.
func (c *switchFlags) find(ctx context.Context, api *client.Client, status string) ([]client.Link, error) {
	query := client.ListQuery{Tag: c.Tag, Status: status}
	host := ""
	if c.Destination != "" {
		var err error
		if host, err = weburl.ParseHost(c.Destination); err != nil {
			return nil, cli.UsageError(fmt.Sprintf("--destination: invalid host %q", c.Destination))
		}
		query.Text = host
	}
	var links []client.Link
	err := cli.Walk(1, true, 100, func(cursor string, limit int) (int, string, error) {
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

// leadsTo reports whether the host of a normalised URL is host or a subdomain of it.
func leadsTo(long, host string) bool {
	u, err := url.Parse(long)
	if err != nil {
		return false
	}
	name := strings.TrimSuffix(u.Hostname(), ".")
	return name == host || strings.HasSuffix(name, "."+host)
}
