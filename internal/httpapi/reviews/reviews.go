package reviews

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/httpapi/decisions"
	"curt/internal/httpapi/kernel"
	"curt/internal/httpapi/links"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/review"
	"curt/internal/weburl"
)

// Path is that of the list of reviews.
const Path = "/api/v1/reviews"

// Review is one link under review, or one refused destination.
type Review struct {
	Case          string       `json:"case,omitzero" format:"uuid" doc:"The case of a refused create; absent for a link. Domain, code and URL are then empty."`
	Domain        string       `json:"domain"`
	ShortCode     string       `json:"short_code"`
	ShortURL      string       `json:"short_url"`
	State         string       `json:"state" enum:"open,closed"`
	Sources       []string     `json:"sources" nullable:"false" enum:"policy,report,appeal,blocked" doc:"What opened the review."`
	Score         int          `json:"score" doc:"The highest policy score, 0 to 100."`
	Host          string       `json:"host" doc:"The destination host when the review was opened."`
	WorkspaceID   string       `json:"workspace_id"`
	OpenedAt      time.Time    `json:"opened_at"`
	DueAt         time.Time    `json:"due_at" doc:"The deadline for a decision."`
	Overdue       bool         `json:"overdue"`
	Reports       int          `json:"reports"`
	Categories    ReportCounts `json:"categories" doc:"Number of reports by reason."`
	FirstReportAt *time.Time   `json:"first_report_at"`
	LastReportAt  *time.Time   `json:"last_report_at"`
	ClosedAt      *time.Time   `json:"closed_at"`
	DecidedBy     *string      `json:"decided_by" doc:"The id of the moderator's key; owner if the link was deleted, retention if its content was removed after it had expired."`
	Decision      *string      `json:"decision" enum:"clean,warn,quarantined,blocked,legal" doc:"The decision that closed the review; null while it is open, and if it was closed without a decision because the content of the link was removed."`
	Link          *links.Link  `json:"link,omitzero" doc:"The link now; absent: deleted."`
}

// ReportCounts counts reports by category.
type ReportCounts struct {
	Phishing int `json:"phishing"`
	Malware  int `json:"malware"`
	Spam     int `json:"spam"`
	Illegal  int `json:"illegal"`
	Other    int `json:"other"`
}

// ReviewList is a page of the queue.
type ReviewList struct {
	Reviews    []Review `json:"reviews" nullable:"false"`
	NextCursor string   `json:"next_cursor,omitzero" doc:"Cursor of the next page; absent on the last page."`
}

// ReviewFile is all that is known about a link under review.
type ReviewFile struct {
	Review

	Findings []abuse.Finding          `json:"findings" nullable:"false" doc:"The signals of the last policy decision, highest score first."`
	Reported []ReportNote             `json:"reported" nullable:"false" doc:"The newest reports, newest first."`
	Appeal   *ReviewAppeal            `json:"appeal,omitzero" doc:"The newest appeal; absent: none."`
	History  []decisions.JournalEntry `json:"history" nullable:"false" doc:"Decisions about the link, newest first."`
}

// ReviewAppeal is an appeal as moderators see it.
type ReviewAppeal struct {
	Appeal

	Reason string  `json:"reason" doc:"Untrusted text."`
	MadeBy *string `json:"made_by" doc:"The id of the key that created it; null: created without a key."`
	Erased bool    `json:"erased" doc:"Reason and answer were erased."`
}

// queue shows moderators what is under review, and takes their decisions.
type queue struct {
	links     *links.Links
	reviewed  *review.Queue
	refused   *review.Refused
	decisions *decisions.Moderation
}

func (q *queue) reviewOperations(d kernel.Describer) []*kernel.Operation {
	code := kernel.CodeParam()
	code.Example = "offer"
	params := []*huma.Param{code, kernel.DomainParam()}
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: Path, OperationID: "list-reviews", Summary: "List reviews",
				Parameters: reviewListParams(), Responses: d.Answers(200, "A page of reviews.", ReviewList{}, nil),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, q.listReviews),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: Path + "/{code}", OperationID: "get-review", Summary: "Get the review of a link",
				Parameters: params, Responses: d.Answers(200, "The open review of the link, or its last one.", ReviewFile{}, nil, 404),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, links.Keyed(q.links, q.getReview)),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: Path + "/{code}/texts", OperationID: "erase-reports", Summary: "Erase the reports and appeals of a link",
				Description: "Erases texts and contacts of reports, and reasons and answers of appeals. Counts and decisions stay.",
				Parameters:  params, Responses: d.Answers(204, "The texts were erased.", nil, nil, 404, 507),
			},
			Action: auth.Moderate, Serve: kernel.Done(http.StatusNoContent, q.links.Of(q.eraseReports)),
		},
		q.decideOperation(d), q.answerOperation(d, params),
	}
}

func reviewListParams() []*huma.Param {
	one, most, none, full := 1.0, float64(moderation.MaxCasePage), 0.0, 100.0
	var categories []any
	for _, c := range moderation.Categories() {
		categories = append(categories, c.String())
	}
	return []*huma.Param{
		kernel.QueryParam("cursor", "The next_cursor of the previous page; use it with the same filters and order.", &huma.Schema{Type: huma.TypeString}),
		kernel.QueryParam("limit", "Maximum number of reviews per page.", &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &most, Default: 50}),
		kernel.QueryParam("state", "Only open or only closed reviews.", kernel.EnumSchema("open", "closed")),
		kernel.QueryParam("source", "Only reviews from this source; blocked: creates that were refused because of their score.", &huma.Schema{Type: huma.TypeString, Enum: []any{"policy", "report", "appeal", "blocked"}}),
		kernel.QueryParam("category", "Only reviews with reports for this reason.", &huma.Schema{Type: huma.TypeString, Enum: categories}),
		kernel.QueryParam("min_score", "Only reviews with at least this score.", &huma.Schema{Type: huma.TypeInteger, Minimum: &none, Maximum: &full, Default: 0}),
		kernel.QueryParam("host", "Only links to exactly this host.", &huma.Schema{Type: huma.TypeString}),
		kernel.QueryParam("workspace", "Only links of this workspace.", &huma.Schema{Type: huma.TypeString}),
		kernel.QueryParam("overdue", "Only reviews past their due time.", &huma.Schema{Type: huma.TypeBoolean}),
		kernel.QueryParam("sort", "By due time with open appeals first, or by highest score, most reports, or newest first.", kernel.EnumSchema("due_at", "-score", "-reports", "-opened_at")),
	}
}

func (q *queue) listReviews(c *kernel.Call) (list ReviewList, err error) {
	limit, err := c.Integer("limit")
	if err != nil {
		return list, err
	}
	f, err := caseFilter(c)
	if err != nil {
		return list, err
	}
	page := moderation.CasePage{Limit: limit}
	walk := []string{"reviews"}
	for _, name := range []string{"state", "source", "category", "min_score", "host", "workspace", "overdue", "sort"} {
		walk = append(walk, c.Query.Get(name))
	}
	after, err := c.Unseal(walk)
	if err != nil {
		return list, err
	}
	var ok bool
	if page.After, ok = parseCasePosition(after); !ok {
		return list, kernel.BadCursor()
	}
	rows, next, err := q.reviewed.List(c.R.Context(), c.Who, f, page)
	if err != nil {
		return list, err
	}
	list = ReviewList{Reviews: q.reviews(c, rows)}
	if next != (moderation.CasePosition{}) {
		list.NextCursor = c.Seal(walk, formatCasePosition(next))
	}
	return list, nil
}

// caseFilter returns what the query asks for.
func caseFilter(c *kernel.Call) (f moderation.CaseFilter, err error) {
	words := map[string]string{}
	for _, name := range []string{"state", "source", "category", "sort"} {
		if words[name], err = c.Choice(name); err != nil {
			return f, err
		}
	}
	f.Closed = words["state"] == "closed"
	f.Source = map[string]moderation.Sources{"policy": moderation.FromPolicy, "report": moderation.FromReport, "appeal": moderation.FromAppeal, "blocked": moderation.FromBlock}[words["source"]]
	if category, ok := moderation.ParseCategory(words["category"]); ok {
		f.Category = &category
	}
	overdue, err := c.Flag("overdue")
	if err != nil {
		return f, err
	}
	if overdue {
		f.DueBefore = c.Now.UTC().Truncate(time.Millisecond)
	}
	f.Order = map[string]moderation.CaseOrder{"-score": moderation.ByScore, "-reports": moderation.ByReports, "-opened_at": moderation.ByNewest}[words["sort"]]
	if f.MinScore, err = c.Integer("min_score"); err != nil {
		return f, err
	}
	f.Workspace = link.WorkspaceID(c.Query.Get("workspace"))
	if host := c.Query.Get("host"); host != "" {
		if f.Host, err = weburl.ParseHost(host); err != nil {
			return f, kernel.BadField("host", "invalid host")
		}
	}
	return f, nil
}

// formatCasePosition writes a position for a cursor, parseCasePosition reads it; "" = the first.
func formatCasePosition(p moderation.CasePosition) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(p.Rank[0]))
	b = binary.BigEndian.AppendUint64(b, uint64(p.Rank[1]))
	return string(append(b, p.ID[:]...))
}

func parseCasePosition(text string) (p moderation.CasePosition, ok bool) {
	if len(text) != 16+len(p.ID) {
		return p, text == ""
	}
	b := []byte(text)
	p.Rank = [2]int64{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}
	copy(p.ID[:], b[16:])
	return p, true
}

// reviews shows cases with their links.
func (q *queue) reviews(c *kernel.Call, rows []review.Row) []Review {
	var keys []link.Key
	for i := range rows {
		if rows[i].Link != nil {
			keys = append(keys, rows[i].Link.Key)
		}
	}
	clicks := q.links.Clicks(c, keys...)
	shown := make([]Review, len(rows))
	for i := range rows {
		shown[i] = q.review(c, &rows[i].Case)
		if l := rows[i].Link; l != nil {
			r := q.links.Resource(l, c.Now, clicks[0])
			shown[i].Link, clicks = &r, clicks[1:]
		}
	}
	return shown
}

// review shows a case. It points into it.
func (q *queue) review(c *kernel.Call, f *moderation.Case) Review {
	by := f.Reports.By
	r := Review{
		ShortCode: string(f.Link.Key.Code), State: "open",
		Sources: []string{}, Score: f.Score, Host: f.Host, WorkspaceID: string(f.Workspace), OpenedAt: f.Opened, DueAt: f.Due,
		Overdue: f.IsOpen() && f.Due.Before(c.Now), Reports: f.Reports.Count,
		Categories: ReportCounts{
			by[moderation.Phishing], by[moderation.Malware], by[moderation.Spam], by[moderation.Illegal], by[moderation.Other],
		},
		FirstReportAt: kernel.Instant(&f.Reports.First), LastReportAt: kernel.Instant(&f.Reports.Last), ClosedAt: kernel.Instant(&f.Closed), DecidedBy: kernel.Optional(&f.DecidedBy),
	}
	if f.Link.IsDestination() {
		r.Case = f.Link.ID.String()
	} else {
		r.Domain, r.ShortURL = q.links.Host(f.Link.Key.Domain), q.links.ShortURL(f.Link.Key)
	}
	for i, name := range []string{"policy", "report", "appeal", "blocked"} {
		if f.Sources&(1<<i) != 0 {
			r.Sources = append(r.Sources, name)
		}
	}
	if !f.IsOpen() {
		r.State, r.Decision = "closed", decided(f.Decided, f.DecidedBy)
	}
	return r
}

// decided is a decision as the API shows it; nil = nobody decided.
func decided(s link.Safety, by string) *string {
	if by == moderation.ActorRetention {
		return nil
	}
	name := s.String()
	return &name
}

func (q *queue) getReview(c *kernel.Call, k link.Key) (shown ReviewFile, err error) {
	f, err := q.reviewed.Show(c.R.Context(), c.Who, k)
	if err != nil {
		return shown, err
	}
	shown = ReviewFile{
		Review: q.reviews(c, []review.Row{f.Row})[0], Findings: findings(f.History), Reported: reportNotes(f.Notes),
		History: q.decisions.Entries(f.History),
	}
	if a := f.Appeal; a != nil {
		shown.Appeal = &ReviewAppeal{Appeal: appealResource(q.links, a), Reason: a.Reason, MadeBy: kernel.Optional(&a.By), Erased: a.Erased}
	}
	return shown, nil
}

// findings returns what the policy saw when it decided last. Evidence of another kind,
// as of many reports, stands in the history only.
func findings(history []moderation.Entry) []abuse.Finding {
	for i := range history {
		var found []abuse.Finding
		if e := &history[i]; e.Actor == moderation.ActorPolicy && json.Unmarshal([]byte(e.Evidence.Body), &found) == nil {
			return slices.Clip(found)
		}
	}
	return []abuse.Finding{}
}

func (q *queue) eraseReports(c *kernel.Call, k link.Key) error {
	_, err := q.reviewed.Erase(c.R.Context(), c.Who, k)
	return err
}
