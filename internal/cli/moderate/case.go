package moderate

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"curt.example/client"
	"curt/internal/cli"
)

// oneCase is embedded in the commands about one case.
type oneCase struct {
	cli.API

	ID string `arg:"" name:"case" help:"The case, as named by the refused create and by curt review list."`
}

// ShowCase is the command "curt review case".
type ShowCase struct {
	oneCase

	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints all that is known about a refused create.
func (c *ShowCase) Run(ctx context.Context, t cli.Terminal) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	f, err := api.Moderation.Case(ctx, c.ID)
	if err != nil {
		return fmt.Errorf("case %s: %w", c.ID, err)
	}
	if c.JSON {
		return cli.PrintJSON(t.Out, &f)
	}
	review := client.ReviewFile{Review: f.Review, Findings: f.Findings, Appeal: f.Appeal, History: f.History}
	lines := append([][2]string{
		{"case", f.Case},
		{"long url", f.LongURL},
		{"host", f.Host},
		{"created by", f.CreatedBy},
		{"refused", strconv.Itoa(f.Refused) + ", last " + f.LastRefused.Format(time.RFC3339)},
	}, fileLines(&review)[1:]...) // there is no short URL
	w := cli.NewTabwriter(t.Out)
	for _, line := range lines {
		if line[1] != "" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", line[0], cli.Plain(line[1])) // Flush reports what failed
		}
	}
	return w.Flush()
}

// EraseCase is the command "curt review erase-case".
type EraseCase struct {
	oneCase

	Reason string `required:"" help:"Reason, for the journal."`
	Yes    bool   `short:"y" help:"Skip the confirmation."`
}

// Run erases what is known about a refused create.
func (c *EraseCase) Run(ctx context.Context, t cli.Terminal) error {
	if err := t.Confirm(ctx, c.Yes, "Permanently erase destination, findings and appeal of case "+c.ID+"?"); err != nil {
		return err
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	if err := api.Moderation.EraseCase(ctx, c.ID, c.Reason); err != nil {
		return fmt.Errorf("erase case %s: %w", c.ID, err)
	}
	t.Note("erased case %s", c.ID)
	return nil
}

// decideCase is what both decisions have.
type decideCase struct {
	oneCase

	Reason   string `required:"" help:"Reason, for the journal."`
	Everyone bool   `help:"Decide for all workspaces, not only for that of the case."`
	Reply    bool   `help:"The reason is also the reply to an open appeal."`
}

// AllowCase is the command "curt review allow".
type AllowCase struct {
	decideCase

	Safety string `default:"clean" enum:"clean,warn,quarantined" help:"Safety of links to the destination: clean, warn or quarantined."`
}

// Run allows the destination.
func (c *AllowCase) Run(ctx context.Context, t cli.Terminal) error {
	return c.decide(ctx, t, c.Safety, "allowed")
}

// RefuseCase is the command "curt review refuse".
type RefuseCase struct{ decideCase }

// Run refuses the destination.
func (c *RefuseCase) Run(ctx context.Context, t cli.Terminal) error {
	return c.decide(ctx, t, "blocked", "refused")
}

func (c *decideCase) decide(ctx context.Context, t cli.Terminal, safety, done string) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	f, err := api.Moderation.DecideCase(ctx, c.ID, client.CaseDecision{Safety: safety, Reason: strings.TrimSpace(c.Reason), Everyone: c.Everyone, Reply: c.Reply})
	if err != nil {
		return fmt.Errorf("decide on case %s: %w", c.ID, err)
	}
	scope := "workspace " + f.WorkspaceID
	if f.Everyone {
		scope = "all workspaces"
	}
	t.Note("%s for %s: case %s", done, scope, f.Case)
	return nil
}
