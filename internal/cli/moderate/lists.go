package moderate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"curt.example/client"
	"curt/internal/cli"
)

// listed names a list; embedded in the commands about one.
type listed struct {
	cli.API

	List string `arg:"" enum:"refused_words,look_alikes,blocked_destinations,allowed_destinations" help:"refused_words, look_alikes, blocked_destinations or allowed_destinations."`
}

// ListLists is the command "curt lists list".
type ListLists struct {
	cli.API
	cli.Format

	List    string `arg:"" optional:"" help:"List to print: refused_words, look_alikes, blocked_destinations or allowed_destinations. Default: how many entries each has."`
	Builtin bool   `help:"Print the built-in entries of the list."`
	Limit   int    `default:"50" help:"Maximum number of entries to print."`
	All     bool   `help:"Print all."`
}

// Run prints the lists, or one of them page by page.
func (c *ListLists) Run(ctx context.Context, t cli.Terminal) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	switch {
	case c.List == "" && c.Builtin:
		return cli.UsageError("--builtin: expected the name of a list")
	case c.List == "":
		all, err := api.Lists.All(ctx)
		if err != nil {
			return fmt.Errorf("get the lists: %w", err)
		}
		return cli.NewTable(t, c.Format, listColumns()).Print(all)
	case c.Builtin:
		all, err := api.Lists.BuiltinEntries(ctx, c.List)
		if err != nil {
			return fmt.Errorf("list built-in entries: %w", err)
		}
		return cli.NewTable(t, c.Format, builtinColumns(c.List)).Print(all)
	}
	return cli.PrintPages(cli.NewTable(t, c.Format, lineColumns()), c.Limit, c.All, 500, "list entries", func(cursor string, limit int) ([]client.ListEntry, string, error) {
		page, err := api.Lists.Entries(ctx, c.List, cursor, limit)
		return page.Entries, page.NextCursor, err
	})
}

func listColumns() []cli.Column[client.List] {
	return []cli.Column[client.List]{
		{Name: "LIST", Text: func(l *client.List) string { return l.Name }},
		{Name: "ENTRIES", Text: func(l *client.List) string { return fmt.Sprint(l.Entries) }},
		{Name: "BUILTIN", Text: func(l *client.List) string { return fmt.Sprint(l.Builtin) }},
		{Name: "DISABLED", Text: func(l *client.List) string { return fmt.Sprint(l.Disabled) }},
	}
}

func builtinColumns(list string) []cli.Column[client.BuiltinEntry] {
	columns := []cli.Column[client.BuiltinEntry]{
		{Name: "ENTRY", Text: func(e *client.BuiltinEntry) string { return e.Value }},
		{Name: "STATE", Text: func(e *client.BuiltinEntry) string {
			if e.Disabled {
				return "disabled"
			}
			return "enabled"
		}},
	}
	if list == client.LookAlikes {
		columns = append(columns, cli.Column[client.BuiltinEntry]{Name: "REFUSES", Text: func(e *client.BuiltinEntry) string {
			if e.OneEdit {
				return "reads alike, one letter wrong"
			}
			return "reads alike"
		}})
	}
	return columns
}

func lineColumns() []cli.Column[client.ListEntry] {
	return []cli.Column[client.ListEntry]{
		{Name: "ENTRY", Text: func(e *client.ListEntry) string { return cli.Truncate(e.Value, 60) }},
		{Name: "SINCE", Text: func(e *client.ListEntry) string { return cli.When(&e.AddedAt) }},
		{Name: "BY", Text: func(e *client.ListEntry) string { return e.AddedBy }},
		{Name: "REASON", Text: func(e *client.ListEntry) string { return cli.Truncate(e.Reason, 60) }},
	}
}

// AddLine is the command "curt lists add".
type AddLine struct {
	listed

	Entry  string `arg:"" help:"refused_words: a word, word* or ~word. look_alikes: a name, ~name or !alias. Both: -ENTRY disables a built-in entry. Destinations: a domain or an IP address."`
	Reason string `required:"" help:"Reason, for the journal."`
}

// Run adds an entry.
func (c *AddLine) Run(ctx context.Context, t cli.Terminal) error {
	return c.change(t, c.Entry, "added %s to %s", "%s is in %s already", func(api *client.Client) (client.ListChange, error) {
		return api.Lists.Add(ctx, c.List, c.Entry, c.Reason)
	})
}

// RemoveLine is the command "curt lists remove".
type RemoveLine struct {
	listed

	Entry  string `arg:"" help:"Entry, as curt lists list prints it."`
	Reason string `help:"Reason, for the journal."`
}

// Run removes an entry.
func (c *RemoveLine) Run(ctx context.Context, t cli.Terminal) error {
	return c.change(t, c.Entry, "removed %s from %s", "%s is not in %s", func(api *client.Client) (client.ListChange, error) {
		return api.Lists.Remove(ctx, c.List, c.Entry, c.Reason)
	})
}

// change changes one entry and reports the outcome.
func (l *listed) change(t cli.Terminal, entry, changed, unchanged string, do func(*client.Client) (client.ListChange, error)) error {
	api, err := l.Client()
	if err != nil {
		return err
	}
	done, err := do(api)
	if err != nil {
		return fmt.Errorf("change %s: %w", l.List, err)
	}
	if done.Changed == 0 {
		changed = unchanged
	}
	t.Note(changed, entry, l.List)
	return nil
}

// ImportLines is the command "curt lists import".
type ImportLines struct {
	listed

	File   string `arg:"" optional:"" default:"-" help:"Text file with one entry per line; - is standard input."`
	Reason string `required:"" help:"Reason, for the journal."`
}

// maxList bounds a file; the server takes 10,000 entries at a time.
const maxList = 1 << 20

// Run adds the entries of a file.
func (c *ImportLines) Run(ctx context.Context, t cli.Terminal) (err error) {
	in := t.In
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return fmt.Errorf("import %s: %w", c.List, err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		in = f
	}
	var text strings.Builder
	n, err := io.Copy(&text, io.LimitReader(in, maxList+1))
	switch {
	case err != nil:
		return fmt.Errorf("import %s: %w", c.List, err)
	case n > maxList:
		return fmt.Errorf("import %s: the file is larger than 1 MiB; split it", c.List)
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	done, err := api.Lists.Import(ctx, c.List, text.String(), c.Reason)
	if err != nil {
		return fmt.Errorf("import %s: %w", c.List, err)
	}
	t.Note("added %d entries to %s, %d were there already", done.Changed, c.List, done.Unchanged)
	return nil
}

// ExportLines is the command "curt lists export".
type ExportLines struct{ listed }

// Run prints a list as import takes it.
func (c *ExportLines) Run(ctx context.Context, t cli.Terminal) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	text, err := api.Lists.Export(ctx, c.List)
	if err != nil {
		return fmt.Errorf("export %s: %w", c.List, err)
	}
	if _, err := t.Out.Write(text); err != nil {
		return fmt.Errorf("export %s: %w", c.List, err)
	}
	return nil
}
