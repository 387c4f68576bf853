package main

import (
	"context"
	"fmt"

	"curt.example/client"
)

type journalCmd struct {
	List    journalListCmd    `cmd:"" help:"Read the journal of moderation, newest first."`
	Erase   journalEraseCmd   `cmd:"" help:"Erase the texts of an entry for good."`
	Rebuild journalRebuildCmd `cmd:"" help:"Give every link the safety that the journal says."`
}

type journalListCmd struct {
	api
	format

	Entity string `placeholder:"KIND:NAME" help:"Entries about this entity, such as link:CODE or host:NAME."`
	Actor  string `placeholder:"KEY" help:"Entries of this key, or of policy."`
	Since  string `placeholder:"DATE" help:"Entries from this date on: 2026-01-31 (UTC) or 2026-01-31T12:00:00Z."`
	Limit  int    `default:"50" help:"The most entries to print."`
	All    bool   `help:"Print all of them."`
}

// Run walks the journal page by page.
func (c *journalListCmd) Run(ctx context.Context, t terminal) error {
	q := client.JournalQuery{Entity: c.Entity, Actor: c.Actor}
	if c.Since != "" {
		var err error
		if q.Since, err = moment(c.Since); err != nil {
			return usageError(fmt.Sprintf("--since: %v", err))
		}
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	s := newSheet(t, c.format, entryColumns())
	return walk(c.Limit, c.All, 100, func(cursor string, limit int) (int, string, error) {
		q.Cursor, q.Limit = cursor, limit
		page, err := api.Journal(ctx, q)
		if err != nil {
			return 0, "", fmt.Errorf("read the journal: %w", err)
		}
		return len(page.Entries), page.NextCursor, s.print(page.Entries)
	})
}

type journalEraseCmd struct {
	api

	Entry  uint64 `arg:"" help:"Number of the entry."`
	Reason string `required:"" help:"Why, for the journal."`
	Yes    bool   `short:"y" help:"Do not ask."`
}

// Run erases texts.
func (c *journalEraseCmd) Run(ctx context.Context, t terminal) error {
	if err := t.confirm(ctx, c.Yes, fmt.Sprintf("Erase reason and evidence of entry %d for good?", c.Entry)); err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	said, err := api.EraseEntry(ctx, c.Entry, c.Reason)
	if err != nil {
		return fmt.Errorf("erase entry %d: %w", c.Entry, err)
	}
	t.note("erased the texts of entry %d; entry %d says so", c.Entry, said.Sequence)
	return nil
}

type journalRebuildCmd struct {
	api

	Force bool `help:"Follow the journal though it was changed, or lacks entries."`
}

// Run asks for the rebuild, which goes on behind the answer.
func (c *journalRebuildCmd) Run(ctx context.Context, t terminal) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if err := api.RebuildSafety(ctx, c.Force); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	t.note("the server compares every link with the journal")
	return nil
}
