package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"curt.example/client"
)

type banCmd struct {
	Add     banAddCmd     `cmd:"" help:"Ban a link, a workspace, a key, a host, a domain or a network."`
	List    banListCmd    `cmd:"" help:"List the bans that stand, newest first."`
	Lift    banLiftCmd    `cmd:"" help:"End a ban; links that it meant are as without it."`
	Preview banPreviewCmd `cmd:"" help:"Count the links that a ban would mean."`
}

// banned names what is banned; embedded in the commands about it.
type banned struct {
	api

	Entity string `arg:"" help:"KIND:NAME: link:CODE, workspace:ID, key:ID, host:NAME, domain:NAME (and all below it) or network:PREFIX."`
}

// open returns who is asked, and about what.
func (b banned) open() (*client.Client, client.Entity, error) {
	kind, name, cut := strings.Cut(b.Entity, ":")
	if !cut || kind == "" || name == "" {
		return nil, client.Entity{}, usageError(fmt.Sprintf("%q: want KIND:NAME, such as host:evil.example", b.Entity))
	}
	api, err := b.client()
	return api, client.Entity{Kind: kind, Name: name}, err
}

type banAddCmd struct {
	banned

	Reason string `required:"" help:"Why, for the journal."`
	Safety string `default:"blocked" enum:"warn,quarantined,blocked,legal" help:"What the links that it means are at least: warn, quarantined, blocked or legal."`
	Yes    bool   `short:"y" help:"Do not show what it would mean, and do not ask."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run shows what a ban would mean, asks, and bans.
func (c *banAddCmd) Run(ctx context.Context, t terminal) error {
	api, e, err := c.open()
	if err != nil {
		return err
	}
	if !c.Yes {
		p, err := api.PreviewBan(ctx, e)
		if err != nil {
			return fmt.Errorf("preview %s: %w", e, err)
		}
		t.note("%s: %s. %s", p.Entity, hits(&p), p.Note)
		if err := t.confirm(ctx, false, "Ban "+p.String()+"?"); err != nil {
			return err
		}
	}
	made, err := api.Ban(ctx, client.NewBan{Entity: e, Safety: c.Safety, Reason: c.Reason})
	if err != nil {
		return fmt.Errorf("ban %s: %w", e, err)
	}
	if c.JSON {
		return printJSON(t.out, &made)
	}
	t.note("banned %s:%s; curt ban lift %d ends it", made.Kind, made.Name, made.Sequence)
	if made.Kind != "link" && made.Kind != "network" {
		t.note("further links like these are refused; those that are there follow, the newest first: curt ban list shows how far")
	}
	return nil
}

// hits says how many links a ban would mean.
func hits(p *client.BanPreview) string {
	text := strconv.FormatUint(p.Links, 10) + " links"
	if !p.Complete {
		return fmt.Sprintf("at least %s, of the newest %d", text, p.LinksSeen)
	}
	return text
}

type banListCmd struct {
	api
	format

	Entity string `placeholder:"KIND:NAME" help:"The ban of this entity only."`
	Limit  int    `default:"50" help:"The most bans to print."`
	All    bool   `help:"Print all of them."`
}

// Run walks the list page by page.
func (c *banListCmd) Run(ctx context.Context, t terminal) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	s := newSheet(t, c.format, banColumns())
	return walk(c.Limit, c.All, 100, func(cursor string, limit int) (int, string, error) {
		page, err := api.Bans(ctx, c.Entity, cursor, limit)
		if err != nil {
			return 0, "", fmt.Errorf("list bans: %w", err)
		}
		return len(page.Bans), page.NextCursor, s.print(page.Bans)
	})
}

func banColumns() []column[client.Ban] {
	return []column[client.Ban]{
		{"BAN", func(b *client.Ban) string { return strconv.FormatUint(b.Sequence, 10) }},
		{"OF", func(b *client.Ban) string { return shortened(b.Kind+":"+b.Name, 60) }},
		{"SAFETY", func(b *client.Ban) string { return b.Safety }},
		{"SINCE", func(b *client.Ban) string { return when(&b.BannedAt) }},
		{"LINKS", func(b *client.Ban) string {
			if b.Walk == nil {
				return "done"
			}
			return fmt.Sprintf("%d of %d seen", b.Walk.LinksChanged, b.Walk.LinksSeen)
		}},
		{"REASON", func(b *client.Ban) string { return shortened(b.Reason, 60) }},
	}
}

type banLiftCmd struct {
	api

	Ban    string `arg:"" help:"Number of the ban, or what is banned as KIND:NAME."`
	Reason string `help:"Why, for the journal."`
}

// Run ends a ban.
func (c *banLiftCmd) Run(ctx context.Context, t terminal) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	sequence, err := strconv.ParseUint(c.Ban, 10, 64)
	if err != nil {
		page, err := api.Bans(ctx, c.Ban, "", 1)
		if err != nil {
			return fmt.Errorf("find the ban of %s: %w", c.Ban, err)
		}
		if len(page.Bans) == 0 {
			return fmt.Errorf("%s is not banned", c.Ban)
		}
		sequence = page.Bans[0].Sequence
	}
	if err := api.LiftBan(ctx, sequence, c.Reason); err != nil {
		return fmt.Errorf("lift ban %s: %w", c.Ban, err)
	}
	t.note("lifted %s", c.Ban)
	return nil
}

type banPreviewCmd struct {
	banned

	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints how many links a ban would mean, and some of them.
func (c *banPreviewCmd) Run(ctx context.Context, t terminal) error {
	api, e, err := c.open()
	if err != nil {
		return err
	}
	p, err := api.PreviewBan(ctx, e)
	if err != nil {
		return fmt.Errorf("preview %s: %w", e, err)
	}
	if c.JSON {
		return printJSON(t.out, &p)
	}
	t.note("%s: %s. %s", p.Entity, hits(&p), p.Note)
	return newSheet(t, format{}, []column[client.BannedLink]{
		{"SHORT URL", func(l *client.BannedLink) string { return l.ShortURL }},
		{"LONG URL", func(l *client.BannedLink) string { return shortened(l.LongURL, 70) }},
	}).print(p.Sample)
}
