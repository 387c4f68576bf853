// Package keys has the commands about API keys. Read keys.go.
package keys

import (
	"context"
	"fmt"
	"strings"
	"time"

	"curt.example/client"
	"curt/internal/cli"
	"curt/internal/config"
)

// Create is the command "curt keys create".
type Create struct {
	cli.API

	Name      string       `arg:"" help:"Name of the key."`
	Scope     []string     `required:"" help:"Some of links:read, links:write, stats:read and admin, separated by commas."`
	ExpiresIn *config.Days `help:"Lifetime of the key, such as 30d or 12h, at least 1s. Default: unlimited."`
	Workspace string       `help:"Workspace of the key; created if new."`
	Plan      string       `help:"Plan of the workspace."`
	JSON      bool         `name:"json" help:"Print the key with its secret as JSON."`
}

// Run prints the secret alone to standard output, so that it can be piped into a secret store.
func (c *Create) Run(ctx context.Context, t cli.Terminal) error {
	asked := client.NewKey{Name: c.Name, Scopes: c.Scope, WorkspaceID: c.Workspace, Plan: c.Plan}
	if c.ExpiresIn != nil {
		if _, err := cli.Seconds("--expires-in", *c.ExpiresIn); err != nil {
			return err
		}
		at := time.Now().Add(time.Duration(*c.ExpiresIn))
		asked.ExpiresAt = &at
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	created, err := api.Keys.Create(ctx, asked)
	if err != nil {
		return fmt.Errorf("create key %s: %w", c.Name, err)
	}
	return printSecret(t, c.JSON, "created", &created)
}

// printSecret prints the secret, and the rest for people; or all of it as JSON.
func printSecret(t cli.Terminal, asJSON bool, done string, k *client.KeySecret) error {
	if asJSON {
		return cli.PrintJSON(t.Out, k)
	}
	t.Note("%s key %s (%s) of workspace %s with %s; its secret is shown only once:",
		done, k.ID, k.Name, k.WorkspaceID, strings.Join(k.Scopes, ", "))
	_, err := fmt.Fprintln(t.Out, cli.Plain(k.Secret))
	return err
}

// List is the command "curt keys list".
type List struct {
	cli.API
	cli.Format

	Workspace string `help:"Only keys of this workspace."`
	Limit     int    `default:"50" help:"Maximum number of keys to print."`
	All       bool   `help:"Print all."`
}

// Run walks the list page by page.
func (c *List) Run(ctx context.Context, t cli.Terminal) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	return cli.PrintPages(cli.NewTable(t, c.Format, keyColumns()), c.Limit, c.All, 100, "list keys", func(cursor string, limit int) ([]client.Key, string, error) {
		page, err := api.Keys.List(ctx, c.Workspace, cursor, limit)
		return page.Keys, page.NextCursor, err
	})
}

func keyColumns() []cli.Column[client.Key] {
	return []cli.Column[client.Key]{
		{Name: "ID", Text: func(k *client.Key) string { return k.ID }},
		{Name: "NAME", Text: func(k *client.Key) string { return cli.Truncate(k.Name, 40) }},
		{Name: "WORKSPACE", Text: func(k *client.Key) string { return k.WorkspaceID }},
		{Name: "SCOPES", Text: func(k *client.Key) string { return strings.Join(k.Scopes, ",") }},
		{Name: "EXPIRES", Text: func(k *client.Key) string { return cli.When(k.ExpiresAt) }},
		{Name: "LAST USED", Text: func(k *client.Key) string { return cli.When(k.LastUsedAt) }},
	}
}

// Revoke is the command "curt keys revoke".
type Revoke struct {
	cli.API

	ID           string `arg:"" help:"Id of the key."`
	RetainShares bool   `name:"keep-shares" help:"Keep the shares created with the key."`
	Yes          bool   `short:"y" help:"Skip the confirmation."`
}

// Run revokes a key.
func (c *Revoke) Run(ctx context.Context, t cli.Terminal) error {
	what := "Programs that use it stop working, and its shares end."
	if c.RetainShares {
		what = "Programs that use it stop working; its shares stay."
	}
	if err := t.Confirm(ctx, c.Yes, "Revoke key "+c.ID+" permanently? "+what); err != nil {
		return err
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	revoke := api.Keys.Revoke
	if c.RetainShares {
		revoke = api.Keys.RevokeOnly
	}
	if err := revoke(ctx, c.ID); err != nil {
		return fmt.Errorf("revoke key %s: %w", c.ID, err)
	}
	t.Note("revoked %s", c.ID)
	return nil
}

// Rotate is the command "curt keys rotate".
type Rotate struct {
	cli.API

	ID      string      `arg:"" help:"Id of the key."`
	Overlap config.Days `default:"1d" help:"How long the old secret stays valid, at most 7d; 0: not at all."`
	JSON    bool        `name:"json" help:"Print the key with its secret as JSON."`
}

// Run prints the new secret alone.
func (c *Rotate) Run(ctx context.Context, t cli.Terminal) error {
	if c.Overlap != 0 {
		if _, err := cli.Seconds("--overlap", c.Overlap); err != nil {
			return err
		}
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	created, err := api.Keys.Rotate(ctx, c.ID, time.Duration(c.Overlap))
	if err != nil {
		return fmt.Errorf("rotate key %s: %w", c.ID, err)
	}
	return printSecret(t, c.JSON, "rotated", &created)
}
