package main

import (
	"context"
	"fmt"
	"strconv"

	"curt.example/client"
)

type linksSafetyCmd struct {
	api
	oneLink

	Safety string `arg:"" optional:"" help:"clean, warn, quarantined, blocked or legal; without it what stands is shown."`
	Reason string `help:"Why, for the journal."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run decides about a link, or shows what stands.
func (c *linksSafetyCmd) Run(ctx context.Context, t terminal) error {
	code, domain, err := target(c.Code)
	switch {
	case err != nil:
		return err
	case c.Safety != "" && c.Reason == "":
		return usageError("--reason: say why, for the journal")
	case c.Safety == "" && c.Reason != "":
		return usageError("name a safety: clean, warn, quarantined, blocked or legal")
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	var s client.LinkSafety
	if c.Safety == "" {
		s, err = api.Safety(ctx, code, client.OnDomain(domain))
	} else {
		s, err = api.Decide(ctx, code, c.Safety, c.Reason, client.OnDomain(domain))
	}
	if err != nil {
		return fmt.Errorf("safety of %s: %w", code, err)
	}
	if c.JSON {
		return printJSON(t.out, &s)
	}
	t.note("%s/%s is %s", s.Domain, s.ShortCode, s.Safety)
	for i := range s.Bans {
		t.note("ban %d of %s:%s wants %s", s.Bans[i].Sequence, s.Bans[i].Kind, s.Bans[i].Name, s.Bans[i].Safety)
	}
	return newSheet(t, format{}, entryColumns()).print(s.History)
}

func entryColumns() []column[client.JournalEntry] {
	return []column[client.JournalEntry]{
		{"ENTRY", func(e *client.JournalEntry) string { return strconv.FormatUint(e.Sequence, 10) }},
		{"AT", func(e *client.JournalEntry) string { return when(&e.At) }},
		{"OF", func(e *client.JournalEntry) string { return shortened(e.Entity.String(), 60) }},
		{"ACTION", func(e *client.JournalEntry) string { return e.Action }},
		{"SAFETY", func(e *client.JournalEntry) string { return e.Safety }},
		{"BY", func(e *client.JournalEntry) string { return e.Actor }},
		{"REASON", func(e *client.JournalEntry) string {
			if e.Erased {
				return "(erased)"
			}
			return shortened(e.Reason, 60)
		}},
	}
}
