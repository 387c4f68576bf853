package moderate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"curt.example/client"
	"curt/internal/cli"
)

// banned names the banned entity; embedded in the commands about one.
type banned struct {
	cli.API

	Entity string `arg:"" help:"KIND:NAME: link:CODE, workspace:ID, key:ID, host:NAME, domain:NAME (with subdomains) or network:PREFIX."`
}

// open returns the client and the entity.
func (b banned) open() (*client.Client, client.Entity, error) {
	kind, name, cut := strings.Cut(b.Entity, ":")
	if !cut || kind == "" || name == "" {
		return nil, client.Entity{}, cli.UsageError(fmt.Sprintf("%q: expected KIND:NAME, such as host:evil.example", b.Entity))
	}
	api, err := b.Client()
	return api, client.Entity{Kind: kind, Name: name}, err
}

// AddBan is the command "curt ban add".
type AddBan struct {
	banned

	Reason string `required:"" help:"Reason, for the journal."`
	Safety string `default:"blocked" enum:"warn,quarantined,blocked,legal" help:"Minimum safety of matching links: warn, quarantined, blocked or legal."`
	Yes    bool   `short:"y" help:"Skip the preview and the confirmation."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run previews the effect of a ban, asks for confirmation, and bans.
func (c *AddBan) Run(ctx context.Context, t cli.Terminal) error {
	api, e, err := c.open()
	if err != nil {
		return err
	}
	if !c.Yes {
		p, err := api.Moderation.PreviewBan(ctx, e)
		if err != nil {
			return fmt.Errorf("preview %s: %w", e, err)
		}
		t.Note("%s: %s. %s", p.Entity, hits(&p), p.Note)
		if err := t.Confirm(ctx, false, "Ban "+p.String()+"?"); err != nil {
			return err
		}
	}
	ban, err := api.Moderation.Ban(ctx, client.NewBan{Entity: e, Safety: c.Safety, Reason: c.Reason})
	if err != nil {
		return fmt.Errorf("ban %s: %w", e, err)
	}
	if c.JSON {
		return cli.PrintJSON(t.Out, &ban)
	}
	t.Note("banned %s:%s; lift it with curt ban lift %d", ban.Kind, ban.Name, ban.Sequence)
	if ban.Kind != "link" && ban.Kind != "network" {
		t.Note("new matching links are refused; existing ones follow, newest first: curt ban list shows the progress")
	}
	return nil
}

// hits is the number of links that a ban would match.
func hits(p *client.BanPreview) string {
	text := strconv.FormatUint(p.Links, 10) + " links"
	if !p.Complete {
		return fmt.Sprintf("at least %s, of the newest %d", text, p.LinksSeen)
	}
	return text
}

// ListBans is the command "curt ban list".
type ListBans struct {
	cli.API
	cli.Format

	Entity string `placeholder:"KIND:NAME" help:"Only the ban on this entity."`
	Limit  int    `default:"50" help:"Maximum number of bans to print."`
	All    bool   `help:"Print all."`
}

// Run walks the list page by page.
func (c *ListBans) Run(ctx context.Context, t cli.Terminal) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	return cli.PrintPages(cli.NewTable(t, c.Format, banColumns()), c.Limit, c.All, 100, "list bans", func(cursor string, limit int) ([]client.Ban, string, error) {
		page, err := api.Moderation.Bans(ctx, c.Entity, cursor, limit)
		return page.Bans, page.NextCursor, err
	})
}

func banColumns() []cli.Column[client.Ban] {
	return []cli.Column[client.Ban]{
		{Name: "BAN", Text: func(b *client.Ban) string { return strconv.FormatUint(b.Sequence, 10) }},
		{Name: "OF", Text: func(b *client.Ban) string { return cli.Truncate(b.Kind+":"+b.Name, 60) }},
		{Name: "SAFETY", Text: func(b *client.Ban) string { return b.Safety }},
		{Name: "SINCE", Text: func(b *client.Ban) string { return cli.When(&b.BannedAt) }},
		{Name: "LINKS", Text: func(b *client.Ban) string {
			if b.Walk == nil {
				return "done"
			}
			return fmt.Sprintf("%d of %d checked", b.Walk.LinksChanged, b.Walk.LinksSeen)
		}},
		{Name: "REASON", Text: func(b *client.Ban) string { return cli.Truncate(b.Reason, 60) }},
	}
}

// LiftBan is the command "curt ban lift".
type LiftBan struct {
	cli.API

	Ban    string `arg:"" help:"Number of the ban, or the banned entity as KIND:NAME."`
	Reason string `help:"Reason, for the journal."`
	Yes    bool   `short:"y" help:"Skip the confirmation."`
}

// Run lifts a ban.
func (c *LiftBan) Run(ctx context.Context, t cli.Terminal) error {
	if err := t.Confirm(ctx, c.Yes, fmt.Sprintf("Lift ban %s? Links that only it stopped redirect again.", c.Ban)); err != nil {
		return err
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	sequence, err := strconv.ParseUint(c.Ban, 10, 64)
	if err != nil {
		page, err := api.Moderation.Bans(ctx, c.Ban, "", 1)
		if err != nil {
			return fmt.Errorf("find the ban of %s: %w", c.Ban, err)
		}
		if len(page.Bans) == 0 {
			return fmt.Errorf("%s is not banned", c.Ban)
		}
		sequence = page.Bans[0].Sequence
	}
	if err := api.Moderation.LiftBan(ctx, sequence, c.Reason); err != nil {
		return fmt.Errorf("lift ban %s: %w", c.Ban, err)
	}
	t.Note("lifted %s", c.Ban)
	return nil
}

// PreviewBan is the command "curt ban preview".
type PreviewBan struct {
	banned

	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints how many links a ban would match, and a sample of them.
func (c *PreviewBan) Run(ctx context.Context, t cli.Terminal) error {
	api, e, err := c.open()
	if err != nil {
		return err
	}
	p, err := api.Moderation.PreviewBan(ctx, e)
	if err != nil {
		return fmt.Errorf("preview %s: %w", e, err)
	}
	if c.JSON {
		return cli.PrintJSON(t.Out, &p)
	}
	t.Note("%s: %s. %s", p.Entity, hits(&p), p.Note)
	return cli.NewTable(t, cli.Format{}, []cli.Column[client.BannedLink]{
		{Name: "SHORT URL", Text: func(l *client.BannedLink) string { return l.ShortURL }},
		{Name: "LONG URL", Text: func(l *client.BannedLink) string { return cli.Truncate(l.LongURL, 70) }},
	}).Print(p.Sample)
}
