package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"curt.example/client"
)

type linksCmd struct {
	List    linksListCmd    `cmd:"" help:"List links, newest first."`
	Get     linksGetCmd     `cmd:"" help:"Show a link."`
	Update  linksUpdateCmd  `cmd:"" help:"Change a link; an empty value clears."`
	Disable linksDisableCmd `cmd:"" help:"Switch links off, also all that lead to one host."`
	Enable  linksEnableCmd  `cmd:"" help:"Switch links on again."`
	Delete  linksDeleteCmd  `cmd:"" help:"Delete links for good."`
	Safety  linksSafetyCmd  `cmd:"" help:"Show what moderation says of a link, or decide about it."`
	Share   linksShareCmd   `cmd:"" help:"Share the statistics of a link by an address."`
}

type linksListCmd struct {
	api
	format

	Query  string `name:"q" help:"Words, each found whole or as a beginning in hosts, path, title, code and tags."`
	Tag    string `help:"Links with this tag."`
	Status string `help:"active or disabled."`
	State  string `help:"live, not_yet, expired, exhausted, disabled, warning, blocked or legal."`
	Domain string `help:"Links of this host."`
	Sort   string `help:"-created_at, created_at or -clicks."`
	Limit  int    `default:"50" help:"The most links to print."`
	All    bool   `help:"Print all of them."`
}

// Run walks the list page by page and prints each as it comes.
func (c *linksListCmd) Run(ctx context.Context, t terminal) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	query := client.ListQuery{Text: c.Query, Tag: c.Tag, Status: c.Status, State: c.State, Domain: c.Domain, Sort: c.Sort}
	s := newSheet(t, c.format, linkColumns())
	return walk(c.Limit, c.All, 100, func(cursor string, limit int) (int, string, error) {
		query.Cursor, query.Limit = cursor, limit
		page, err := api.Find(ctx, query)
		if err != nil {
			return 0, "", fmt.Errorf("list links: %w", err)
		}
		return len(page.Links), page.NextCursor, s.print(page.Links)
	})
}

// walk calls next for page after page, until the list ends or limit records have been
// seen. A page may be empty before the end.
func walk(limit int, all bool, most int, next func(cursor string, limit int) (n int, after string, err error)) error {
	if limit < 1 {
		return usageError("--limit: want 1 or more")
	}
	for cursor := ""; limit > 0 || all; {
		size := most
		if !all {
			size = min(limit, most)
		}
		n, after, err := next(cursor, size)
		if err != nil {
			return err
		}
		if after == "" {
			return nil
		}
		limit, cursor = limit-n, after
	}
	return nil
}

func linkColumns() []column[client.Link] {
	return []column[client.Link]{
		{"SHORT URL", func(l *client.Link) string { return l.ShortURL }},
		{"CLICKS", func(l *client.Link) string { return count(l.Clicks) }},
		{"STATE", func(l *client.Link) string { return l.State }},
		{"CREATED", func(l *client.Link) string { return l.CreatedAt.Local().Format(time.DateOnly) }},
		{"LONG URL", func(l *client.Link) string { return shortened(l.LongURL, 70) }},
	}
}

// count shows a number that may be unknown.
func count(n *uint64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatUint(*n, 10)
}

// shortened cuts text after n characters.
func shortened(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// oneLink names a link; embedded in the commands about one.
type oneLink struct {
	Code string `arg:"" help:"Code of the link, or its short URL."`
}

type linksGetCmd struct {
	api
	oneLink

	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints a link.
func (c *linksGetCmd) Run(ctx context.Context, t terminal) error {
	code, domain, err := target(c.Code)
	if err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	l, err := api.Get(ctx, code, client.OnDomain(domain))
	if err != nil {
		return fmt.Errorf("get %s: %w", code, err)
	}
	return printLink(t, c.JSON, &l)
}

// printLink prints a link as JSON, or its fields one below the other; those that
// are empty are left out.
func printLink(t terminal, asJSON bool, l *client.Link) error {
	if asJSON {
		return printJSON(t.out, l)
	}
	w := newTable(t.out)
	names, cells := fields(l)
	for i, name := range names {
		if cells[i] != "" && cells[i] != "false" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", strings.ReplaceAll(name, "_", " "), cells[i])
		}
	}
	return w.Flush()
}
