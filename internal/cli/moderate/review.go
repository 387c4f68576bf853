package moderate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"curt.example/client"
	"curt/internal/cli"
)

// ListReviews is the command "curt review list".
type ListReviews struct {
	cli.API

	State     string `help:"open or closed."`
	Source    string `help:"Only reviews from this source: policy, report, appeal or blocked."`
	Category  string `help:"Only reports for this reason: phishing, malware, spam, illegal or other."`
	MinScore  int    `help:"Only reviews with at least this score, 0 to 100."`
	Host      string `help:"Only links to exactly this host."`
	Workspace string `help:"Only links of this workspace."`
	Overdue   bool   `help:"Only overdue reviews."`
	Sort      string `help:"due_at, -score, -reports or -opened_at."`
	Limit     int    `default:"50" help:"Maximum number of links to print."`
	All       bool   `help:"Print all."`
	JSON      bool   `name:"json" help:"Print JSON, an object on each line."`
}

// Run walks the queue page by page.
func (c *ListReviews) Run(ctx context.Context, t cli.Terminal) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	query := client.ReviewQuery{
		State: c.State, Source: c.Source, Category: c.Category, MinScore: c.MinScore, Host: c.Host, Workspace: c.Workspace,
		Overdue: c.Overdue, Sort: c.Sort,
	}
	table := cli.NewTable(t, cli.Format{JSON: c.JSON}, reviewColumns())
	return cli.PrintPages(table, c.Limit, c.All, 100, "list reviews", func(cursor string, limit int) ([]client.Review, string, error) {
		query.Cursor, query.Limit = cursor, limit
		page, err := api.Moderation.Reviews(ctx, query)
		return page.Reviews, page.NextCursor, err
	})
}

func reviewColumns() []cli.Column[client.Review] {
	return []cli.Column[client.Review]{
		{Name: "SHORT URL", Text: nameOf},
		{Name: "SAFETY", Text: func(r *client.Review) string {
			if r.Case != "" {
				return "blocked"
			}
			return ofLink(r, func(l *client.Link) string { return l.Safety })
		}},
		{Name: "BY", Text: func(r *client.Review) string { return strings.Join(r.Sources, ",") }},
		{Name: "SCORE", Text: func(r *client.Review) string { return strconv.Itoa(r.Score) }},
		{Name: "REPORTS", Text: func(r *client.Review) string { return strconv.Itoa(r.Reports) }},
		{Name: "DUE", Text: dueOf},
		{Name: "LONG URL", Text: func(r *client.Review) string {
			return ofLink(r, func(l *client.Link) string { return cli.Truncate(l.LongURL, 60) })
		}},
	}
}

// nameOf is what a review is about: a link, or the case of a refused create.
func nameOf(r *client.Review) string {
	if r.Case != "" {
		return "case " + r.Case
	}
	return r.ShortURL
}

// ofLink returns a text of the link, which may be deleted; of a refused create the host.
func ofLink(r *client.Review, f func(*client.Link) string) string {
	if r.Case != "" {
		return r.Host
	}
	if r.Link == nil {
		return "deleted"
	}
	return f(r.Link)
}

// dueOf is the deadline of an open review, or the decision of a closed one.
func dueOf(r *client.Review) string {
	switch {
	case r.State != "open" && r.Decision == "":
		return "content removed"
	case r.State != "open":
		return r.Decision
	case r.Overdue:
		return "overdue"
	}
	return r.DueAt.Local().Format(time.DateTime)
}

// ShowReview is the command "curt review show".
type ShowReview struct {
	cli.OneLink

	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints all that is known about a link.
func (c *ShowReview) Run(ctx context.Context, t cli.Terminal) error {
	api, code, where, err := c.Open()
	if err != nil {
		return err
	}
	f, err := api.Moderation.Review(ctx, code, where)
	if err != nil {
		return fmt.Errorf("review of %s: %w", code, err)
	}
	if c.JSON {
		return cli.PrintJSON(t.Out, &f)
	}
	w := cli.NewTabwriter(t.Out)
	for _, line := range fileLines(&f) {
		if line[1] != "" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", line[0], cli.Plain(line[1])) // Flush reports what failed
		}
	}
	return w.Flush()
}

// fileLines are the lines of a review: the link, its findings, the reports, and the decisions.
// Each has a name; texts with line breaks stay on one line.
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
			{"clicks", cli.Count(l.Clicks)},
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

// cellOf is a text that may be missing.
func cellOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// EraseReports is the command "curt review erase".
type EraseReports struct {
	cli.OneLink

	Yes bool `short:"y" help:"Skip the confirmation."`
}

// Run erases the texts of reporters and of the owner.
func (c *EraseReports) Run(ctx context.Context, t cli.Terminal) error {
	api, code, where, err := c.Open()
	if err != nil {
		return err
	}
	if err := t.Confirm(ctx, c.Yes, "Permanently erase the reports of "+c.Code+", and its appeals?"); err != nil {
		return err
	}
	if err := api.Moderation.EraseReports(ctx, code, where); err != nil {
		return fmt.Errorf("erase the reports of %s: %w", code, err)
	}
	t.Note("erased the reports and appeals of %s", c.Code)
	return nil
}

// maxDecisions is the limit of the API for one request.
const maxDecisions = 100

// Decide is the command "curt review decide".
type Decide struct {
	cli.API

	Codes  []string `arg:"" optional:"" name:"code" help:"Codes of links, or their short URLs; without one, or with -, a line of standard input for each: CODE, or CODE, tab, SAFETY, tab, REASON."`
	Safety string   `help:"clean, warn, quarantined, blocked or legal."`
	Reason string   `help:"Reason, for the journal."`
}

// Run decides on the named links, 100 in a request. One failure does not stop it.
func (c *Decide) Run(ctx context.Context, t cli.Terminal) error {
	var decisions []client.Decision
	var err error
	switch {
	case len(c.Codes) > 0 && c.Codes[0] != "-":
		for _, name := range c.Codes {
			var d client.Decision
			if d, err = c.decision(name); err != nil {
				return err
			}
			decisions = append(decisions, d)
		}
	case cli.IsTerminal(t.In):
		return cli.UsageError("expected a code")
	default:
		if decisions, err = c.read(t.In); err != nil {
			return err
		}
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	failed, all := 0, len(decisions)
	for len(decisions) > 0 {
		if ctx.Err() != nil {
			return cli.ErrInterrupted
		}
		n := min(len(decisions), maxDecisions)
		results, err := api.Moderation.DecideMany(ctx, decisions[:n])
		if err != nil {
			return fmt.Errorf("decide: %w", err)
		}
		for i := range results {
			if !sayDecided(t, decisions[i].Code, &results[i]) {
				failed++
			}
		}
		decisions = decisions[n:]
	}
	if failed > 0 {
		return cli.Reported(fmt.Errorf("%d of %d failed", failed, all))
	}
	return nil
}

// decision reads the decision on one link: its name, and safety and reason of the line or of
// the flags.
func (c *Decide) decision(line string) (d client.Decision, err error) {
	parts := strings.SplitN(line, "\t", 3)
	d.Safety, d.Reason = c.Safety, c.Reason
	if len(parts) > 1 {
		d.Safety = strings.TrimSpace(parts[1])
	}
	if len(parts) > 2 {
		d.Reason = strings.TrimSpace(parts[2])
	}
	switch {
	case d.Safety == "":
		return d, cli.UsageError("--safety is required: clean, warn, quarantined, blocked or legal")
	case !slices.Contains([]string{"clean", "warn", "quarantined", "blocked", "legal"}, d.Safety):
		return d, cli.UsageError(fmt.Sprintf("unknown safety %q: expected clean, warn, quarantined, blocked or legal", d.Safety))
	case d.Reason == "":
		return d, cli.UsageError("--reason is required, for the journal")
	}
	d.Code, d.Domain, err = cli.ParseLink(strings.TrimSpace(parts[0]))
	return d, err
}

// read reads all lines before the first request, so that a mistake in one of them changes
// nothing.
func (c *Decide) read(in io.Reader) (decisions []client.Decision, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, cli.MaxLine)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimPrefix(lines.Text(), "\ufeff")
		if strings.TrimSpace(line) == "" {
			continue
		}
		d, err := c.decision(line)
		if err != nil {
			return nil, cli.UsageError(fmt.Sprintf("line %d: %v", n, err))
		}
		decisions = append(decisions, d)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the decisions: %w", err)
	}
	return decisions, nil
}

// sayDecided prints the result of a decision and reports whether it succeeded.
func sayDecided(t cli.Terminal, code string, d *client.Decided) bool {
	switch {
	case d.Problem != nil:
		t.Complain(fmt.Errorf("decide on %s: %w", code, d.Problem))
		return false
	case d.Link == nil:
		t.Complain(fmt.Errorf("decide on %s: %w", code, errors.New("the response does not include it")))
		return false
	}
	if b := d.HeldBy; b != nil {
		t.Note("%s %s: a ban overrides this decision; lift it with curt ban lift %d (%s:%s)", d.Link.Safety, d.Link.ShortURL, b.Sequence, b.Kind, b.Name)
		return true
	}
	t.Note("%s %s", d.Link.Safety, d.Link.ShortURL)
	return true
}

// AnswerAppeal is the command "curt review answer".
type AnswerAppeal struct {
	cli.OneLink

	Safety string `required:"" help:"New safety of the link: clean, warn, quarantined, blocked or legal."`
	Text   string `required:"" help:"Reply to the owner."`
}

// Run answers an appeal.
func (c *AnswerAppeal) Run(ctx context.Context, t cli.Terminal) error {
	api, code, where, err := c.Open()
	if err != nil {
		return err
	}
	done, err := api.Moderation.AnswerAppeal(ctx, code, c.Safety, c.Text, where)
	if err != nil {
		return fmt.Errorf("answer the appeal for %s: %w", code, err)
	}
	if !sayDecided(t, code, &done) {
		return cli.Reported(errors.New("no appeal was answered"))
	}
	return nil
}
