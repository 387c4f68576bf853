// Package links has the commands about links over the API: create, list, change and delete them,
// their clicks and statistics, and their QR codes.
//
// Read links.go first; flags.go has a flag for each field of a link, and shorten.go is the bulk
// creation from standard input.
package links

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"curt.example/client"
	"curt/internal/cli"
	"curt/internal/config"
)

// List is the command "curt links list".
type List struct {
	cli.API
	cli.Format

	Query  string `name:"q" help:"Words, each matched as a word or prefix in hosts, path, title, code and tags."`
	Tag    string `help:"Only links with this tag."`
	Status string `help:"active or disabled."`
	State  string `help:"live, not_yet, expired, exhausted, disabled, warning, blocked or legal."`
	Domain string `help:"Only links on this domain."`
	Sort   string `help:"-created_at, created_at or -clicks."`
	Limit  int    `default:"50" help:"Maximum number of links to print."`
	All    bool   `help:"Print all."`
}

// Run walks the list page by page and prints each as it comes.
func (c *List) Run(ctx context.Context, t cli.Terminal) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	query := client.ListQuery{Text: c.Query, Tag: c.Tag, Status: c.Status, State: c.State, Domain: c.Domain, Sort: c.Sort}
	return cli.PrintPages(cli.NewTable(t, c.Format, linkColumns()), c.Limit, c.All, 100, "list links", func(cursor string, limit int) ([]client.Link, string, error) {
		query.Cursor, query.Limit = cursor, limit
		page, err := api.Find(ctx, query)
		return page.Links, page.NextCursor, err
	})
}

func linkColumns() []cli.Column[client.Link] {
	return []cli.Column[client.Link]{
		{Name: "SHORT URL", Text: func(l *client.Link) string { return l.ShortURL }},
		{Name: "CLICKS", Text: func(l *client.Link) string { return cli.Count(l.Clicks) }},
		{Name: "STATE", Text: func(l *client.Link) string { return l.State }},
		{Name: "CREATED", Text: func(l *client.Link) string { return l.CreatedAt.Local().Format(time.DateOnly) }},
		{Name: "LONG URL", Text: func(l *client.Link) string { return cli.Truncate(l.LongURL, 70) }},
	}
}

// Get is the command "curt links get".
type Get struct {
	cli.OneLink

	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints a link.
func (c *Get) Run(ctx context.Context, t cli.Terminal) error {
	api, code, where, err := c.Open()
	if err != nil {
		return err
	}
	l, err := api.Get(ctx, code, where)
	if err != nil {
		return fmt.Errorf("get %s: %w", code, err)
	}
	return printLink(t, c.JSON, &l)
}

// printLink prints a link as JSON, or its non-empty fields as lines.
func printLink(t cli.Terminal, asJSON bool, l *client.Link) error {
	if asJSON {
		return cli.PrintJSON(t.Out, l)
	}
	w := cli.NewTabwriter(t.Out)
	names, cells := cli.Fields(l)
	for i, name := range names {
		if cells[i] != "" && cells[i] != "false" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", strings.ReplaceAll(name, "_", " "), cells[i])
		}
	}
	return w.Flush()
}

// ifVersion is embedded in the commands that change a link.
type ifVersion struct {
	IfVersion *uint64 `help:"Only if the link has this version."`
}

func (v ifVersion) options(where client.LinkOption) []client.LinkOption {
	if v.IfVersion == nil {
		return []client.LinkOption{where}
	}
	return []client.LinkOption{where, client.IfVersion(*v.IfVersion)}
}

// Update is the command "curt links update".
type Update struct {
	cli.OneLink

	changeFlags
	ifVersion
	JSON bool `name:"json" help:"Print the link as JSON."`
}

// Run changes the given fields and prints the updated link.
func (c *Update) Run(ctx context.Context, t cli.Terminal) error {
	code, where, err := c.Target()
	if err != nil {
		return err
	}
	patch, err := c.patch()
	if err != nil {
		return err
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	l, err := api.Update(ctx, code, patch, c.options(where)...)
	if err != nil {
		return fmt.Errorf("update %s: %w", code, err)
	}
	return printLink(t, c.JSON, &l)
}

// Delete is the command "curt links delete".
type Delete struct {
	cli.API

	Codes []string `arg:"" name:"code" help:"Codes of links, or their short URLs."`
	Yes   bool     `short:"y" help:"Skip the confirmation."`
	ifVersion
}

// Run deletes the links in order; one failure does not stop it.
func (c *Delete) Run(ctx context.Context, t cli.Terminal) error {
	if err := t.Confirm(ctx, c.Yes, "Delete "+strings.Join(c.Codes, ", ")+" permanently? The code can never be reused."); err != nil {
		return err
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	count := cli.NewTally(t, len(c.Codes))
	err = cli.Each(ctx, count, c.Codes, func(name string) error {
		code, domain, err := cli.ParseLink(name)
		if err != nil {
			return err
		}
		if err := api.Delete(ctx, code, c.options(client.OnDomain(domain))...); err != nil {
			return fmt.Errorf("delete %s: %w", name, err)
		}
		t.Note("deleted %s", name)
		return nil
	})
	return errors.Join(err, count.End())
}

// Share is the command "curt links share".
type Share struct {
	cli.OneLink

	For *config.Days `placeholder:"DURATION" help:"Lifetime of the share link, such as 7d. Default: 30d."`
	End bool         `help:"Revoke all share links of the link instead."`
}

// Run prints a URL with which anyone can read the statistics of a link, or revokes all of them.
func (c *Share) Run(ctx context.Context, t cli.Terminal) error {
	code, where, err := c.Target()
	switch {
	case err != nil:
		return err
	case c.End && c.For != nil:
		return cli.UsageError("--for and --end are mutually exclusive")
	}
	var lifetime time.Duration // 0 = default of the server
	if c.For != nil {
		if _, err := cli.Seconds("--for", *c.For); err != nil {
			return err
		}
		lifetime = time.Duration(*c.For)
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	if c.End {
		if err := api.EndShares(ctx, code, where); err != nil {
			return fmt.Errorf("revoke the share links of %s: %w", code, err)
		}
		t.Note("revoked all share links of %s", code)
		return nil
	}
	created, err := api.Share(ctx, code, lifetime, where)
	if err != nil {
		return fmt.Errorf("share the statistics of %s: %w", code, err)
	}
	_, err = fmt.Fprintln(t.Out, created.URL)
	return err
}
