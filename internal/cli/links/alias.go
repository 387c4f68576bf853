package links

import (
	"context"
	"fmt"
	"strings"
	"time"

	"curt.example/client"
	"curt/internal/cli"
)

// aliasFlags name an alias.
type aliasFlags struct {
	cli.API

	Alias  string `arg:"" help:"The alias."`
	Domain string `help:"The domain of the link. Default: the default domain."`
}

// client returns a client for an alias that can stand in a path.
func (f *aliasFlags) client() (*client.Client, error) {
	if f.Alias == "" || f.Alias == "." || f.Alias == ".." || strings.Contains(f.Alias, "/") {
		return nil, cli.UsageError(fmt.Sprintf("alias %q: expected 3 to 64 characters of A-Z a-z 0-9 - _", f.Alias))
	}
	return f.Client()
}

// CheckAlias is the command "curt alias check".
type CheckAlias struct {
	aliasFlags

	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints whether an alias is available, and others that are.
func (c *CheckAlias) Run(ctx context.Context, t cli.Terminal) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	a, err := api.CheckAlias(ctx, c.Alias, c.Domain)
	if err != nil {
		return fmt.Errorf("check %s: %w", c.Alias, err)
	}
	if c.JSON {
		return cli.PrintJSON(t.Out, aliasJSON{Alias: a, ShortURL: orNull(a.ShortURL), Reason: orNull(a.Reason), Detail: orNull(a.Detail)})
	}
	_, err = fmt.Fprintln(t.Out, aliasLine(&a))
	return err
}

// aliasJSON is an alias as the API shows it.
type aliasJSON struct {
	client.Alias

	ShortURL *string `json:"short_url"`
	Reason   *string `json:"reason"`
	Detail   *string `json:"detail"`
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// aliasLine says of an alias what there is to say.
func aliasLine(a *client.Alias) string {
	line := a.Alias + " is free"
	switch {
	case a.Available && a.ReservedUntil != nil:
		line = a.Alias + " is reserved by your workspace until " + clock(*a.ReservedUntil)
	case !a.Available && a.ReservedUntil != nil:
		line = a.Alias + " is reserved until " + clock(*a.ReservedUntil)
	case !a.Available:
		line = a.Alias + " is not available: " + a.Detail
	}
	if len(a.Suggestions) > 0 {
		line += "; free: " + strings.Join(a.Suggestions, ", ")
	}
	return line
}

func clock(at time.Time) string { return at.Local().Format(time.TimeOnly) }

// ReserveAlias is the command "curt alias reserve".
type ReserveAlias struct {
	aliasFlags

	JSON bool `name:"json" help:"Print JSON."`
}

// Run reserves an alias.
func (c *ReserveAlias) Run(ctx context.Context, t cli.Terminal) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	r, err := api.Aliases.Reserve(ctx, c.Alias, c.Domain)
	if err != nil {
		return fmt.Errorf("reserve %s: %w", c.Alias, err)
	}
	if c.JSON {
		return cli.PrintJSON(t.Out, r)
	}
	_, err = fmt.Fprintf(t.Out, "reserved %s until %s\n", r.ShortURL, clock(r.ReservedUntil))
	return err
}

// ReleaseAlias is the command "curt alias release".
type ReleaseAlias struct{ aliasFlags }

// Run releases an alias.
func (c *ReleaseAlias) Run(ctx context.Context, t cli.Terminal) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if err := api.Aliases.Release(ctx, c.Alias, c.Domain); err != nil {
		return fmt.Errorf("release %s: %w", c.Alias, err)
	}
	_, err = fmt.Fprintf(t.Out, "released %s\n", c.Alias)
	return err
}
