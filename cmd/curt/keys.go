package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"curt.example/client"
	"curt/internal/config"
)

type keysCmd struct {
	Create keysCreateCmd `cmd:"" help:"Make an API key and print its secret, this once."`
	List   keysListCmd   `cmd:"" help:"List API keys."`
	Revoke keysRevokeCmd `cmd:"" help:"End an API key for good."`
	Rotate keysRotateCmd `cmd:"" help:"Give an API key another secret and print it, this once."`
}

type keysCreateCmd struct {
	api

	Name      string       `arg:"" help:"What the key is for."`
	Scope     []string     `required:"" help:"Some of links:read, links:write, stats:read and admin, separated by commas."`
	ExpiresIn *config.Days `help:"How long the key lives, such as 30d or 12h, 1s or more; default: for ever."`
	Workspace string       `help:"Whose key it is; a workspace that is new is made."`
	Plan      string       `help:"Plan of the workspace."`
	JSON      bool         `name:"json" help:"Print the key with its secret as JSON."`
}

// Run prints the secret alone, so that it can be piped to where it is kept.
func (c *keysCreateCmd) Run(ctx context.Context, t terminal) error {
	asked := client.NewKey{Name: c.Name, Scopes: c.Scope, WorkspaceID: c.Workspace, Plan: c.Plan}
	if c.ExpiresIn != nil {
		if _, err := seconds("--expires-in", *c.ExpiresIn); err != nil {
			return err
		}
		at := time.Now().Add(time.Duration(*c.ExpiresIn))
		asked.ExpiresAt = &at
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	made, err := api.CreateKey(ctx, asked)
	if err != nil {
		return fmt.Errorf("make key %s: %w", c.Name, err)
	}
	return printSecret(t, c.JSON, "made", &made)
}

// printSecret prints the secret, and the rest for people; or all of it as JSON.
func printSecret(t terminal, asJSON bool, done string, k *client.KeySecret) error {
	if asJSON {
		return printJSON(t.out, k)
	}
	t.note("%s key %s (%s) of workspace %s with %s; its secret is shown only now:",
		done, k.ID, k.Name, k.WorkspaceID, strings.Join(k.Scopes, ", "))
	_, err := fmt.Fprintln(t.out, plain(k.Secret))
	return err
}

type keysListCmd struct {
	api
	format

	Workspace string `help:"Keys of this workspace only."`
	Limit     int    `default:"50" help:"The most keys to print."`
	All       bool   `help:"Print all of them."`
}

// Run walks the list page by page.
func (c *keysListCmd) Run(ctx context.Context, t terminal) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	s := newSheet(t, c.format, keyColumns())
	return walk(c.Limit, c.All, 100, func(cursor string, limit int) (int, string, error) {
		page, err := api.ListKeys(ctx, c.Workspace, cursor, limit)
		if err != nil {
			return 0, "", fmt.Errorf("list keys: %w", err)
		}
		return len(page.Keys), page.NextCursor, s.print(page.Keys)
	})
}

func keyColumns() []column[client.Key] {
	return []column[client.Key]{
		{"ID", func(k *client.Key) string { return k.ID }},
		{"NAME", func(k *client.Key) string { return shortened(k.Name, 40) }},
		{"WORKSPACE", func(k *client.Key) string { return k.WorkspaceID }},
		{"SCOPES", func(k *client.Key) string { return strings.Join(k.Scopes, ",") }},
		{"EXPIRES", func(k *client.Key) string { return when(k.ExpiresAt) }},
		{"LAST USED", func(k *client.Key) string { return when(k.LastUsedAt) }},
	}
}

type keysRevokeCmd struct {
	api

	ID         string `arg:"" help:"Id of the key."`
	KeepShares bool   `help:"Let the shares of statistics that it made go on."`
	Yes        bool   `short:"y" help:"Do not ask."`
}

// Run revokes a key.
func (c *keysRevokeCmd) Run(ctx context.Context, t terminal) error {
	what := "Programs that use it stop working, and what it shared ends."
	if c.KeepShares {
		what = "Programs that use it stop working; what it shared goes on."
	}
	if err := t.confirm(ctx, c.Yes, "Revoke key "+c.ID+" for good? "+what); err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	revoke := api.RevokeKey
	if c.KeepShares {
		revoke = api.RevokeKeyOnly
	}
	if err := revoke(ctx, c.ID); err != nil {
		return fmt.Errorf("revoke key %s: %w", c.ID, err)
	}
	t.note("revoked %s", c.ID)
	return nil
}

type keysRotateCmd struct {
	api

	ID      string      `arg:"" help:"Id of the key."`
	Overlap config.Days `default:"1d" help:"How long the secret before goes on, at most 7d; 0: it stops at once."`
	JSON    bool        `name:"json" help:"Print the key with its secret as JSON."`
}

// Run prints the new secret alone.
func (c *keysRotateCmd) Run(ctx context.Context, t terminal) error {
	if c.Overlap != 0 {
		if _, err := seconds("--overlap", c.Overlap); err != nil {
			return err
		}
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	made, err := api.RotateKey(ctx, c.ID, time.Duration(c.Overlap))
	if err != nil {
		return fmt.Errorf("rotate key %s: %w", c.ID, err)
	}
	return printSecret(t, c.JSON, "rotated", &made)
}
