// Package lists is the API of the lists that moderators maintain: refused words, look-alikes,
// blocked and allowed destinations.
//
// Read lists.go for the operations; blocked.go shows bans of domains as one of the lists.
package lists

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/httpapi/kernel"
	"curt/internal/moderation"
	"curt/internal/moderation/lists"
	"curt/internal/moderation/moderator"
)

const (
	path      = "/api/v1/lists"
	linesPath = path + "/{list}/entries"

	maxBody   = 16 << 10
	maxImport = 1 << 20
)

// byteOrderMark is what some editors write in front of UTF-8.
const byteOrderMark = "\ufeff"

// blocked is the list that is a view of bans.
const blocked = "blocked_destinations"

// kinds are the other lists, by name.
func kinds() map[string]moderation.Kind {
	return map[string]moderation.Kind{
		"refused_words": moderation.KindRefusedWord, "look_alikes": moderation.KindLookAlike, "allowed_destinations": moderation.KindAllowedDestination,
	}
}

// names are all lists, in the order in which they are shown.
func names() []string {
	return []string{"refused_words", "look_alikes", blocked, "allowed_destinations"}
}

// Lists are the operations on lists.
type Lists struct {
	Keeper    *lists.Keeper
	Moderator *moderator.Moderator
}

// ListSummary is what is known of a list.
type ListSummary struct {
	Name     string `json:"name" enum:"refused_words,look_alikes,blocked_destinations,allowed_destinations"`
	Entries  int    `json:"entries" doc:"Number of entries by moderators."`
	Builtin  int    `json:"builtin" doc:"Number of built-in entries."`
	Disabled int    `json:"disabled" doc:"How many of the built-in entries are disabled."`
}

// ListSummaries are all lists.
type ListSummaries struct {
	Lists []ListSummary `json:"lists" nullable:"false"`
}

// ListEntry is a line of a list.
type ListEntry struct {
	Value    string    `json:"value" doc:"The entry in canonical form."`
	Sequence uint64    `json:"sequence" doc:"The number of the journal entry that added it; of a blocked destination, the number of the ban."`
	Reason   *string   `json:"reason"`
	AddedBy  string    `json:"added_by" doc:"The id of a key, or admin."`
	AddedAt  time.Time `json:"added_at"`
}

// ListPage is a page of a list.
type ListPage struct {
	Entries    []ListEntry `json:"entries" nullable:"false"`
	NextCursor string      `json:"next_cursor,omitzero" doc:"Cursor of the next page; absent on the last page."`
}

// BuiltinEntry is a built-in line of a list.
type BuiltinEntry struct {
	Value    string `json:"value"`
	OneEdit  bool   `json:"one_edit" doc:"Of look_alikes: aliases with one letter wrong are refused too, not only those that read like it."`
	Disabled bool   `json:"disabled" doc:"The list has the entry -VALUE; remove it to enable this one again."`
}

// BuiltinEntries are all of a list.
type BuiltinEntries struct {
	Entries []BuiltinEntry `json:"entries" nullable:"false"`
}

// EntryCreate is the body that adds an entry.
type EntryCreate struct {
	Value  string `json:"value" minLength:"1" maxLength:"255" doc:"refused_words: an alias, a beginning such as word*, or ~word for everything that reads like it; at least 3 characters. look_alikes: a protected name, ~name to exclude aliases with one letter wrong, or !alias for an alias that is allowed. Both: -VALUE disables a built-in entry. Destinations: a domain, with all hosts below it, or an IP address."`
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"The reason, for the journal."`
}

// ListImport is the body that adds many entries.
type ListImport struct {
	Text   string `json:"text" minLength:"1" doc:"One entry per line; from # on a line is a comment. At most 10,000 entries; 1,000 of blocked_destinations. If one is invalid, none is added."`
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"The reason, for the journal."`
}

// ListChange is the outcome of a change.
type ListChange struct {
	Changed   int `json:"changed" doc:"Number of entries that were added or removed."`
	Unchanged int `json:"unchanged" doc:"Number of entries that the list had, or lacked, already."`
}

// Operations are what the API can do with lists.
func (l *Lists) Operations(d kernel.Describer) []*kernel.Operation {
	list := &huma.Param{
		Name: "list", In: "path", Required: true, Example: "refused_words",
		Description: "refused_words, look_alikes, blocked_destinations or allowed_destinations.", Schema: &huma.Schema{Type: huma.TypeString},
	}
	return append(l.ofLists(d, list), l.ofEntries(d, list)...)
}

func (l *Lists) ofLists(d kernel.Describer, list *huma.Param) []*kernel.Operation {
	text := d.Answers(200, "The list, one entry per line, as import takes it.", nil, nil, 404)
	text["200"].Content = map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: path, OperationID: "get-lists", Summary: "Get the lists that moderators maintain",
				Responses: d.Answers(200, "All lists.", ListSummaries{}, nil),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, l.all),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: path + "/{list}/builtin", OperationID: "list-builtin-entries", Summary: "List the built-in entries of a list",
				Parameters: []*huma.Param{list}, Responses: d.Answers(200, "The built-in entries.", BuiltinEntries{}, nil, 404),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, l.builtin),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: path + "/{list}/import", OperationID: "import-list", Summary: "Add many entries to a list",
				Description:  "All entries are checked first. Repeating an interrupted import completes it.",
				MaxBodyBytes: maxImport, RequestBody: d.Body(ListImport{}, "application/json"), Parameters: []*huma.Param{list},
				Responses: d.Answers(200, "What changed.", ListChange{}, nil, 404, 408, 413, 415, 507),
			},
			Action: auth.Moderate, Serve: kernel.Take(http.StatusOK, l.importLines),
			Examples: []kernel.Example{{Name: "words", Summary: "Two words", Body: `{"text":"lottery\nbingo* # and what begins so\n","reason":"gambling is not allowed here"}`}},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: path + "/{list}/export", OperationID: "export-list", Summary: "Export a list as text",
				Parameters: []*huma.Param{list}, Responses: text,
			},
			Action: auth.Moderate, Serve: l.export,
		},
	}
}

func (l *Lists) ofEntries(d kernel.Describer, list *huma.Param) []*kernel.Operation {
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: linesPath, OperationID: "add-list-entry", Summary: "Add an entry to a list",
				Description: "In effect on this server before the response, and on every other one within a second. Adding an entry that the list has changes " +
					"nothing. Refused words and look-alikes concern new aliases. A blocked destination is a ban of its domain, which existing links get too. " +
					"An allowed destination is exempt from the score and from lists in files, but not from bans.",
				MaxBodyBytes: maxBody, RequestBody: d.Body(EntryCreate{}, "application/json"), Parameters: []*huma.Param{list},
				Responses: d.Answers(200, "What changed.", ListChange{}, nil, 404, 408, 413, 415, 507),
			},
			Action: auth.Moderate, Serve: kernel.Take(http.StatusOK, l.add),
			Examples: []kernel.Example{{Name: "word", Summary: "Refuse an alias and what reads like it", Body: `{"value":"~jackpot","reason":"gambling is not allowed here"}`}},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: linesPath, OperationID: "list-list-entries", Summary: "List the entries of a list, in alphabetical order",
				Parameters: []*huma.Param{
					list,
					kernel.QueryParam("cursor", "The next_cursor of the previous page; use it with the same list.", &huma.Schema{Type: huma.TypeString}),
					kernel.QueryParam("limit", "Maximum number of entries per page.", kernel.RangeSchema(1, 500, 50)),
				},
				Responses: d.Answers(200, "A page of the list.", ListPage{}, nil, 404),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, l.page),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: linesPath + "/{value}", OperationID: "remove-list-entry", Summary: "Remove an entry from a list",
				Description: "Removing -VALUE enables a built-in entry again. Removing a blocked destination lifts the ban of its domain.",
				Parameters: []*huma.Param{
					list,
					{Name: "value", In: "path", Required: true, Description: "The entry.", Example: "~casino", Schema: &huma.Schema{Type: huma.TypeString}},
					kernel.QueryParam("reason", "The reason, for the journal.", &huma.Schema{Type: huma.TypeString}),
				},
				Responses: d.Answers(200, "What changed.", ListChange{}, nil, 404, 507),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, l.remove),
		},
	}
}

// list returns the list that the path names, and its kind unless it is the view of bans.
func list(c *kernel.Call) (name string, kind moderation.Kind, err error) {
	name = c.R.PathValue("list")
	if !slices.Contains(names(), name) {
		return "", "", kernel.Refuse(kernel.KindNoRoute(), "no such list; expected "+strings.Join(names(), ", "))
	}
	return name, kinds()[name], nil
}

func (l *Lists) all(*kernel.Call) (all ListSummaries, err error) {
	for _, name := range names() {
		shown := ListSummary{Name: name}
		if kind, ok := kinds()[name]; ok {
			shown.Entries = l.Keeper.Len(kind)
			for _, line := range l.Keeper.Builtin(kind) {
				if shown.Builtin++; l.Keeper.Disabled(kind, line) {
					shown.Disabled++
				}
			}
		} else {
			shown.Entries = len(l.bans())
		}
		all.Lists = append(all.Lists, shown)
	}
	return all, nil
}

func (l *Lists) builtin(c *kernel.Call) (all BuiltinEntries, err error) {
	_, kind, err := list(c)
	if err != nil {
		return all, err
	}
	all.Entries = []BuiltinEntry{}
	for _, line := range l.Keeper.Builtin(kind) {
		all.Entries = append(all.Entries, BuiltinEntry{line, l.Keeper.OneEdit(kind, line), l.Keeper.Disabled(kind, line)})
	}
	return all, nil
}

func (l *Lists) add(c *kernel.Call, body *EntryCreate) (ListChange, error) {
	return l.change(c, moderation.ActionList, []lists.Line{{Value: body.Value}}, body.Reason)
}

func (l *Lists) remove(c *kernel.Call) (ListChange, error) {
	reason := c.Query.Get("reason")
	if reason == "" {
		reason = "removed"
	}
	return l.change(c, moderation.ActionUnlist, []lists.Line{{Value: c.R.PathValue("value")}}, reason)
}

func (l *Lists) importLines(c *kernel.Call, body *ListImport) (ListChange, error) {
	var lines []lists.Line
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(body.Text, byteOrderMark)) {
		number++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if lines = append(lines, lists.Line{Number: number, Value: line}); len(lines) > lists.MaxImport {
			return ListChange{}, kernel.BadField("text", "expected at most 10,000 entries")
		}
	}
	return l.change(c, moderation.ActionList, lines, body.Reason)
}

// change adds or removes lines. Whoever has asked and gone gets it done, or not, as a whole step.
func (l *Lists) change(c *kernel.Call, action moderation.Action, lines []lists.Line, reason string) (ListChange, error) {
	name, kind, err := list(c)
	if err != nil {
		return ListChange{}, err
	}
	changed := 0
	if name == blocked {
		changed, err = l.changeBans(c, action, lines, reason)
	} else {
		var entries []moderation.Entry
		entries, err = l.Keeper.Change(c.R.Context(), c.Now, c.Who.KeyID, action, kind, lines, reason)
		changed = len(entries)
	}
	return ListChange{Changed: changed, Unchanged: len(lines) - changed}, err
}

func (l *Lists) page(c *kernel.Call) (page ListPage, err error) {
	name, _, err := list(c)
	if err != nil {
		return page, err
	}
	limit, err := c.Integer("limit")
	if err != nil {
		return page, err
	}
	walk := []string{"lists", name}
	after, err := c.Unseal(walk)
	if err != nil {
		return page, err
	}
	page.Entries = []ListEntry{}
	found, err := l.lines(c.R.Context(), name, after, limit+1)
	if err != nil {
		return page, err
	}
	if len(found) > limit {
		found = found[:limit]
		page.NextCursor = c.Seal(walk, found[limit-1].Entity.Name)
	}
	for i := range found {
		e := &found[i]
		page.Entries = append(page.Entries, ListEntry{
			Value: e.Entity.Name, Sequence: e.Sequence, Reason: kernel.Optional(&e.Reason.Body), AddedBy: e.Actor, AddedAt: e.At,
		})
	}
	return page, nil
}

// lines returns up to n lines of a list behind a value.
func (l *Lists) lines(ctx context.Context, name, after string, n int) ([]moderation.Entry, error) {
	if kind, ok := kinds()[name]; ok {
		return l.Keeper.Lines(ctx, kind, after, n)
	}
	bans := l.bans()
	from, found := slices.BinarySearchFunc(bans, after, func(e moderation.Entry, name string) int { return strings.Compare(e.Entity.Name, name) })
	if found {
		from++
	}
	return bans[from:min(len(bans), from+n)], nil
}

// exportPage is how many lines are read at a time.
const exportPage = 1000

func (l *Lists) export(c *kernel.Call) error {
	name, _, err := list(c)
	if err != nil {
		return err
	}
	page, err := l.lines(c.R.Context(), name, "", exportPage)
	if err != nil {
		return err
	}
	c.W.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.W.Header().Set("Content-Disposition", `attachment; filename="`+name+`.txt"`)
	for len(page) > 0 {
		var text strings.Builder
		for i := range page {
			e := &page[i]
			text.WriteString(e.Entity.Name + " # " + e.At.Format(time.DateOnly) + " " + e.Actor + ": " + strings.ReplaceAll(e.Reason.Body, "\n", " ") + "\n")
		}
		if _, err := c.W.Write([]byte(text.String())); err != nil {
			return nil //nolint:nilerr // the client is gone
		}
		if page, err = l.lines(c.R.Context(), name, page[len(page)-1].Entity.Name, exportPage); err != nil {
			panic(http.ErrAbortHandler) // an incomplete list must not look complete
		}
	}
	return nil
}
