// Package moderate has the commands of moderators over the API: the safety of a link and the
// journal, bans, and the review queue.
//
// Read journal.go first: every decision is an entry there.
package moderate

import (
	"context"
	"fmt"
	"strconv"

	"curt.example/client"
	"curt/internal/cli"
)

// ListEntries is the command "curt journal list".
type ListEntries struct {
	cli.API
	cli.Format

	Entity string `placeholder:"KIND:NAME" help:"Only entries about this entity, such as link:CODE or host:NAME."`
	Actor  string `placeholder:"KEY" help:"Only entries by this key, or by policy."`
	Since  string `placeholder:"DATE" help:"Only entries from this date on: 2026-01-31 (UTC) or 2026-01-31T12:00:00Z."`
	Limit  int    `default:"50" help:"Maximum number of entries to print."`
	All    bool   `help:"Print all."`
}

// Run walks the journal page by page.
func (c *ListEntries) Run(ctx context.Context, t cli.Terminal) error {
	q := client.JournalQuery{Entity: c.Entity, Actor: c.Actor}
	if c.Since != "" {
		var err error
		if q.Since, err = cli.ParseTime(c.Since); err != nil {
			return cli.UsageError(fmt.Sprintf("--since: %v", err))
		}
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	return cli.PrintPages(cli.NewTable(t, c.Format, entryColumns()), c.Limit, c.All, 100, "read the journal", func(cursor string, limit int) ([]client.JournalEntry, string, error) {
		q.Cursor, q.Limit = cursor, limit
		page, err := api.Moderation.Journal(ctx, q)
		return page.Entries, page.NextCursor, err
	})
}

// EraseEntry is the command "curt journal erase".
type EraseEntry struct {
	cli.API

	Entry  uint64 `arg:"" help:"Number of the entry."`
	Reason string `required:"" help:"Reason, for the journal."`
	Yes    bool   `short:"y" help:"Skip the confirmation."`
}

// Run erases the texts of an entry.
func (c *EraseEntry) Run(ctx context.Context, t cli.Terminal) error {
	if err := t.Confirm(ctx, c.Yes, fmt.Sprintf("Permanently erase reason and evidence of entry %d?", c.Entry)); err != nil {
		return err
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	said, err := api.Moderation.EraseEntry(ctx, c.Entry, c.Reason)
	if err != nil {
		return fmt.Errorf("erase entry %d: %w", c.Entry, err)
	}
	t.Note("erased the texts of entry %d, recorded in entry %d", c.Entry, said.Sequence)
	return nil
}

// Rebuild is the command "curt journal rebuild".
type Rebuild struct {
	cli.API

	Force bool `help:"Use the journal even if it was changed or lacks entries."`
	Yes   bool `short:"y" help:"Skip the confirmation of --force."`
}

// Run starts the rebuild, which continues after the response.
func (c *Rebuild) Run(ctx context.Context, t cli.Terminal) error {
	if err := t.Confirm(ctx, c.Yes || !c.Force, "Set the safety of every link by the journal, even if entries were changed or are missing?"); err != nil {
		return err
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	if err := api.Moderation.RebuildSafety(ctx, c.Force); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	t.Note("rebuild started: the server compares every link with the journal")
	return nil
}

// Safety is the command "curt links safety".
type Safety struct {
	cli.OneLink

	Safety string `arg:"" optional:"" help:"clean, warn, quarantined, blocked or legal. Default: show the current safety."`
	Reason string `help:"Reason, for the journal."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run sets the safety of a link, or prints the current one with its history.
func (c *Safety) Run(ctx context.Context, t cli.Terminal) error {
	code, where, err := c.Target()
	switch {
	case err != nil:
		return err
	case c.Safety != "" && c.Reason == "":
		return cli.UsageError("--reason is required, for the journal")
	case c.Safety == "" && c.Reason != "":
		return cli.UsageError("expected a safety: clean, warn, quarantined, blocked or legal")
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	var s client.LinkSafety
	if c.Safety == "" {
		s, err = api.Moderation.Safety(ctx, code, where)
	} else {
		s, err = api.Moderation.Decide(ctx, code, c.Safety, c.Reason, where)
	}
	if err != nil {
		return fmt.Errorf("safety of %s: %w", code, err)
	}
	if c.JSON {
		return cli.PrintJSON(t.Out, &s)
	}
	t.Note("%s/%s is %s", s.Domain, s.ShortCode, s.Safety)
	for i := range s.Bans {
		t.Note("ban %d on %s:%s requires %s", s.Bans[i].Sequence, s.Bans[i].Kind, s.Bans[i].Name, s.Bans[i].Safety)
	}
	return cli.NewTable(t, cli.Format{}, entryColumns()).Print(s.History)
}

func entryColumns() []cli.Column[client.JournalEntry] {
	return []cli.Column[client.JournalEntry]{
		{Name: "ENTRY", Text: func(e *client.JournalEntry) string { return strconv.FormatUint(e.Sequence, 10) }},
		{Name: "AT", Text: func(e *client.JournalEntry) string { return cli.When(&e.At) }},
		{Name: "OF", Text: func(e *client.JournalEntry) string { return cli.Truncate(e.Entity.String(), 60) }},
		{Name: "ACTION", Text: func(e *client.JournalEntry) string { return e.Action }},
		{Name: "SAFETY", Text: func(e *client.JournalEntry) string { return e.Safety }},
		{Name: "BY", Text: func(e *client.JournalEntry) string { return e.Actor }},
		{Name: "REASON", Text: func(e *client.JournalEntry) string {
			if e.Erased {
				return "(erased)"
			}
			return cli.Truncate(e.Reason, 60)
		}},
	}
}
