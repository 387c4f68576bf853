package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"curt.example/client"
)

type reviewCmd struct {
	List   reviewListCmd   `cmd:"" help:"List the links that wait for a moderator, open appeals first."`
	Show   reviewShowCmd   `cmd:"" help:"Show all that is known about a link under review."`
	Decide reviewDecideCmd `cmd:"" help:"Decide about links, also about many on standard input."`
	Answer reviewAnswerCmd `cmd:"" help:"Answer the appeal for a link, once."`
	Erase  reviewEraseCmd  `cmd:"" help:"Erase what strangers wrote about a link."`
}

type reviewListCmd struct {
	api

	State     string `help:"open or closed."`
	Source    string `help:"What brought them here: policy, report or appeal."`
	Category  string `help:"What they were reported for: phishing, malware, spam, illegal or other."`
	MinScore  int    `help:"Those with at least this score of the policy, 0 to 100."`
	Host      string `help:"Links that led to exactly this host."`
	Workspace string `help:"Links of this workspace."`
	Overdue   bool   `help:"Those that have waited too long."`
	Sort      string `help:"due_at, -score, -reports or -opened_at."`
	Limit     int    `default:"50" help:"The most links to print."`
	All       bool   `help:"Print all of them."`
	JSON      bool   `name:"json" help:"Print JSON, an object on each line."`
}

// Run walks the queue page by page.
func (c *reviewListCmd) Run(ctx context.Context, t terminal) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	query := client.ReviewQuery{
		State: c.State, Source: c.Source, Category: c.Category, MinScore: c.MinScore, Host: c.Host, Workspace: c.Workspace,
		Overdue: c.Overdue, Sort: c.Sort,
	}
	s := newSheet(t, format{JSON: c.JSON}, reviewColumns())
	return walk(c.Limit, c.All, 100, func(cursor string, limit int) (int, string, error) {
		query.Cursor, query.Limit = cursor, limit
		page, err := api.ListReviews(ctx, query)
		if err != nil {
			return 0, "", fmt.Errorf("list reviews: %w", err)
		}
		return len(page.Reviews), page.NextCursor, s.print(page.Reviews)
	})
}

func reviewColumns() []column[client.Review] {
	return []column[client.Review]{
		{"SHORT URL", func(r *client.Review) string { return r.ShortURL }},
		{"SAFETY", func(r *client.Review) string { return ofLink(r, func(l *client.Link) string { return l.Safety }) }},
		{"BY", func(r *client.Review) string { return strings.Join(r.Sources, ",") }},
		{"SCORE", func(r *client.Review) string { return strconv.Itoa(r.Score) }},
		{"REPORTS", func(r *client.Review) string { return strconv.Itoa(r.Reports) }},
		{"DUE", dueOf},
		{"LONG URL", func(r *client.Review) string {
			return ofLink(r, func(l *client.Link) string { return shortened(l.LongURL, 60) })
		}},
	}
}

// ofLink shows something of the link, which may be gone.
func ofLink(r *client.Review, f func(*client.Link) string) string {
	if r.Link == nil {
		return "deleted"
	}
	return f(r.Link)
}

// dueOf says by when somebody should have decided, or what was.
func dueOf(r *client.Review) string {
	switch {
	case r.State != "open":
		return r.Decision
	case r.Overdue:
		return "overdue"
	}
	return r.DueAt.Local().Format(time.DateTime)
}

// reviewed is a link that a command is about.
type reviewed struct {
	api
	oneLink
}

// reach returns the client, and what names the link for it.
func (c *reviewed) reach() (*client.Client, string, client.LinkOption, error) {
	code, domain, err := target(c.Code)
	if err != nil {
		return nil, "", nil, err
	}
	api, err := c.client()
	return api, code, client.OnDomain(domain), err
}

type reviewShowCmd struct {
	reviewed

	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints all that is known about a link.
func (c *reviewShowCmd) Run(ctx context.Context, t terminal) error {
	api, code, where, err := c.reach()
	if err != nil {
		return err
	}
	f, err := api.GetReview(ctx, code, where)
	if err != nil {
		return fmt.Errorf("review of %s: %w", code, err)
	}
	if c.JSON {
		return printJSON(t.out, &f)
	}
	w := newTable(t.out)
	for _, line := range fileLines(&f) {
		if line[1] != "" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", line[0], plain(line[1])) // Flush reports what failed
		}
	}
	return w.Flush()
}

// fileLines are the lines of a file: what the link is, why it is here, what was said, and
// what was decided. Texts of several lines stay on one: a name stands before each.
func fileLines(f *client.ReviewFile) [][2]string {
	lines := [][2]string{
		{"short url", f.ShortURL},
		{"state", f.State},
		{"by", strings.Join(f.Sources, ",")},
		{"score", strconv.Itoa(f.Score)},
		{"workspace", f.WorkspaceID},
		{"opened", f.OpenedAt.Format(time.RFC3339)},
		{"due", dueOf(&f.Review)},
	}
	if l := f.Link; l != nil {
		lines = append(lines, [][2]string{
			{"safety", l.Safety},
			{"long url", l.LongURL},
			{"fallback url", cellOf(l.FallbackURL)},
			{"title", l.Title},
			{"clicks", count(l.Clicks)},
			{"created", l.CreatedAt.Format(time.RFC3339)},
			{"updated", l.UpdatedAt.Format(time.RFC3339)},
		}...)
	}
	for _, x := range f.Findings {
		lines = append(lines, [2]string{"finding", fmt.Sprintf("%s %d %s", x.Signal, x.Points, x.Evidence)})
	}
	for _, name := range []string{"phishing", "malware", "spam", "illegal", "other"} {
		if n := f.Categories[name]; n > 0 {
			lines = append(lines, [2]string{"reported as " + name, strconv.Itoa(n)})
		}
	}
	for _, n := range f.Reported {
		said := "(erased)"
		if !n.Erased {
			said = strings.Join(slices.DeleteFunc([]string{n.Text, n.Contact}, func(s string) bool { return s == "" }), " — ")
		}
		lines = append(lines, [2]string{"report", strings.TrimSpace(n.At.Format(time.RFC3339) + " " + n.Category + " " + said)})
	}
	if a := f.Appeal; a != nil {
		lines = append(lines, [][2]string{{"appeal", a.CreatedAt.Format(time.RFC3339) + " " + a.Reason}, {"answer", a.Answer}}...)
	}
	for _, e := range f.History {
		lines = append(lines, [2]string{"decided", fmt.Sprintf("%s %s by %s: %s", e.At.Format(time.RFC3339), e.Safety, e.Actor, e.Reason)})
	}
	return lines
}

// cellOf shows a text that may be missing.
func cellOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

type reviewEraseCmd struct {
	reviewed

	Yes bool `short:"y" help:"Do not ask."`
}

// Run erases what strangers wrote.
func (c *reviewEraseCmd) Run(ctx context.Context, t terminal) error {
	api, code, where, err := c.reach()
	if err != nil {
		return err
	}
	if err := t.confirm(ctx, c.Yes, "Erase all that was reported about "+c.Code+", and its appeals, for good?"); err != nil {
		return err
	}
	if err := api.EraseReports(ctx, code, where); err != nil {
		return fmt.Errorf("erase the reports of %s: %w", code, err)
	}
	t.note("erased what was reported about %s", c.Code)
	return nil
}
