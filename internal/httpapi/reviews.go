package httpapi

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/review"
	"curt/internal/weburl"
)

const reviewsPath = "/api/v1/reviews"

// Review is one link under review.
type Review struct {
	Domain        string       `json:"domain"`
	ShortCode     string       `json:"short_code"`
	ShortURL      string       `json:"short_url" format:"uri"`
	State         string       `json:"state" enum:"open,closed"`
	Sources       []string     `json:"sources" nullable:"false" enum:"policy,report,appeal" doc:"What brought it here."`
	Score         int          `json:"score" doc:"The highest of the policy's decisions, 0 to 100."`
	Host          string       `json:"host" doc:"Where the link led when the review was opened."`
	WorkspaceID   string       `json:"workspace_id"`
	OpenedAt      time.Time    `json:"opened_at"`
	DueAt         time.Time    `json:"due_at" doc:"By then a moderator should have decided."`
	Overdue       bool         `json:"overdue"`
	Reports       int          `json:"reports"`
	Categories    ReportCounts `json:"categories" doc:"How many of the reports say what."`
	FirstReportAt *time.Time   `json:"first_report_at"`
	LastReportAt  *time.Time   `json:"last_report_at"`
	ClosedAt      *time.Time   `json:"closed_at"`
	DecidedBy     *string      `json:"decided_by" doc:"The id of the moderator's key; owner when the link was deleted."`
	Decision      *string      `json:"decision" enum:"clean,warn,quarantined,blocked,legal" doc:"What closed the review; null while it is open."`
	Link          *Link        `json:"link,omitzero" doc:"The link as it is now; absent: it was deleted."`
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
	NextCursor string   `json:"next_cursor,omitzero" doc:"Continues the walk; absent at its end."`
}

// ReviewFile is all that is known about a link under review.
type ReviewFile struct {
	Review

	Findings []abuse.Finding `json:"findings" nullable:"false" doc:"What the policy saw when it decided last, most first."`
	Reported []ReportNote    `json:"reported" nullable:"false" doc:"What the newest reports say, the newest first."`
	Appeal   *ReviewAppeal   `json:"appeal,omitzero" doc:"The newest; absent: there is none."`
	History  []JournalEntry  `json:"history" nullable:"false" doc:"What was decided about the link, the newest first."`
}

// ReviewAppeal is an appeal as moderators see it.
type ReviewAppeal struct {
	Appeal

	Reason string  `json:"reason" doc:"A stranger wrote it."`
	MadeBy *string `json:"made_by" doc:"The id of the key that made it; null: nobody's."`
	Erased bool    `json:"erased" doc:"Reason and answer are gone."`
}

func (a *api) reviewOperations(d describer) []*operation {
	code := codeParam()
	code.Example = "offer"
	params := []*huma.Param{code, domainParam()}
	return []*operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: reviewsPath, OperationID: "list-reviews", Summary: "List the links that wait for a moderator",
				Parameters: reviewListParams(), Responses: d.answers(200, "A page of the queue.", ReviewList{}, nil),
			},
			action: auth.Moderate, serve: (*call).listReviews,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: reviewsPath + "/{code}", OperationID: "get-review", Summary: "Show all that is known about a link under review",
				Parameters: params, Responses: d.answers(200, "The open review of the link, or the last one.", ReviewFile{}, nil, 404),
			},
			action: auth.Moderate, serve: (*call).getReview,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: reviewsPath + "/{code}/texts", OperationID: "erase-reports", Summary: "Erase what strangers wrote about a link",
				Description: "Texts and contacts of reports, and reasons of appeals with their answers. Counts and decisions stay.",
				Parameters:  params, Responses: d.answers(204, "Nothing of it is left.", nil, nil, 404, 507),
			},
			action: auth.Moderate, serve: (*call).eraseReports,
		},
		a.decideOperation(d), a.answerOperation(d, params),
	}
}

func reviewListParams() []*huma.Param {
	one, most, none, full := 1.0, float64(moderation.MaxCasePage), 0.0, 100.0
	var categories []any
	for _, c := range moderation.Categories() {
		categories = append(categories, c.String())
	}
	return []*huma.Param{
		queryParam("cursor", "Where to go on: the next_cursor of the page before, with the same filters and order.", &huma.Schema{Type: huma.TypeString}),
		queryParam("limit", "The most reviews of a page.", &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &most, Default: 50}),
		queryParam("state", "Those that wait, or those that were decided.", enumSchema("open", "closed")),
		queryParam("source", "Only those that this brought here.", &huma.Schema{Type: huma.TypeString, Enum: []any{"policy", "report", "appeal"}}),
		queryParam("category", "Only those that were reported for this.", &huma.Schema{Type: huma.TypeString, Enum: categories}),
		queryParam("min_score", "Only those with at least this score.", &huma.Schema{Type: huma.TypeInteger, Minimum: &none, Maximum: &full, Default: 0}),
		queryParam("host", "Only links that led to exactly this host.", &huma.Schema{Type: huma.TypeString}),
		queryParam("workspace", "Only links of this workspace.", &huma.Schema{Type: huma.TypeString}),
		queryParam("overdue", "Only those that have waited too long.", &huma.Schema{Type: huma.TypeBoolean}),
		queryParam("sort", "What is due first, open appeals before all; the highest score, the most reports, or the newest first.", enumSchema("due_at", "-score", "-reports", "-opened_at")),
	}
}

func (c *call) listReviews() error {
	limit, err := c.integer("limit")
	if err != nil {
		return err
	}
	f, err := c.caseFilter()
	if err != nil {
		return err
	}
	page := moderation.CasePage{Limit: limit}
	walk := []string{"reviews"}
	for _, name := range []string{"state", "source", "category", "min_score", "host", "workspace", "overdue", "sort"} {
		walk = append(walk, c.query.Get(name))
	}
	if sealed := c.query.Get("cursor"); sealed != "" {
		after, ok := c.api.cursors.openWalk(walk, sealed)
		if page.After, ok = parseCasePosition(after, ok); !ok {
			return badField("cursor", "is not a cursor of this list")
		}
	}
	rows, next, err := c.api.review.List(c.r.Context(), c.who, f, page)
	if err != nil {
		return err
	}
	list := ReviewList{Reviews: c.reviews(rows)}
	if next != (moderation.CasePosition{}) {
		list.NextCursor = c.api.cursors.sealWalk(walk, formatCasePosition(next))
	}
	return c.json(http.StatusOK, list)
}

// caseFilter returns what the query asks for.
func (c *call) caseFilter() (f moderation.CaseFilter, err error) {
	words := map[string]string{}
	for _, name := range []string{"state", "source", "category", "sort"} {
		if words[name], err = c.choice(name); err != nil {
			return f, err
		}
	}
	f.Closed = words["state"] == "closed"
	f.Source = map[string]moderation.Sources{"policy": moderation.FromPolicy, "report": moderation.FromReport, "appeal": moderation.FromAppeal}[words["source"]]
	if category, ok := moderation.ParseCategory(words["category"]); ok {
		f.Category = &category
	}
	overdue, err := c.flag("overdue")
	if err != nil {
		return f, err
	}
	if overdue {
		f.DueBefore = c.now.UTC().Truncate(time.Millisecond)
	}
	f.Order = map[string]moderation.CaseOrder{"-score": moderation.ByScore, "-reports": moderation.ByReports, "-opened_at": moderation.ByNewest}[words["sort"]]
	if f.MinScore, err = c.integer("min_score"); err != nil {
		return f, err
	}
	f.Workspace = link.WorkspaceID(c.query.Get("workspace"))
	if host := c.query.Get("host"); host != "" {
		if f.Host, err = weburl.ParseHost(host); err != nil {
			return f, badField("host", "is no host")
		}
	}
	return f, nil
}

// formatCasePosition writes a position for a cursor, parseCasePosition reads it.
func formatCasePosition(p moderation.CasePosition) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(p.Rank[0]))
	b = binary.BigEndian.AppendUint64(b, uint64(p.Rank[1]))
	return string(append(b, p.ID[:]...))
}

func parseCasePosition(text string, signed bool) (p moderation.CasePosition, ok bool) {
	if !signed || len(text) != 16+len(p.ID) {
		return p, false
	}
	b := []byte(text)
	p.Rank = [2]int64{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}
	copy(p.ID[:], b[16:])
	return p, true
}

// reviews shows cases with their links.
func (c *call) reviews(rows []review.Row) []Review {
	var keys []link.Key
	for i := range rows {
		if rows[i].Link != nil {
			keys = append(keys, rows[i].Link.Key)
		}
	}
	clicks := c.clicks(c.r.Context(), keys...)
	shown := make([]Review, len(rows))
	for i := range rows {
		shown[i] = c.review(&rows[i].Case)
		if l := rows[i].Link; l != nil {
			r := c.api.sites.resource(l, c.now, clicks[0])
			shown[i].Link, clicks = &r, clicks[1:]
		}
	}
	return shown
}

// review shows a case. It points into it.
func (c *call) review(f *moderation.Case) Review {
	s, by := c.api.sites, f.Reports.By
	r := Review{
		Domain: s.name(f.Link.Key.Domain), ShortCode: string(f.Link.Key.Code), ShortURL: s.shortURL(f.Link.Key), State: "open",
		Sources: []string{}, Score: f.Score, Host: f.Host, WorkspaceID: string(f.Workspace), OpenedAt: f.Opened, DueAt: f.Due,
		Overdue: f.IsOpen() && f.Due.Before(c.now), Reports: f.Reports.Count,
		Categories: ReportCounts{
			by[moderation.Phishing], by[moderation.Malware], by[moderation.Spam], by[moderation.Illegal], by[moderation.Other],
		},
		FirstReportAt: instant(&f.Reports.First), LastReportAt: instant(&f.Reports.Last), ClosedAt: instant(&f.Closed), DecidedBy: text(&f.DecidedBy),
	}
	for i, name := range []string{"policy", "report", "appeal"} {
		if f.Sources&(1<<i) != 0 {
			r.Sources = append(r.Sources, name)
		}
	}
	if !f.IsOpen() {
		decision := f.Decided.String()
		r.State, r.Decision = "closed", &decision
	}
	return r
}

func (c *call) getReview() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	f, err := c.api.review.Show(c.r.Context(), c.who, k)
	if err != nil {
		return err
	}
	shown := ReviewFile{
		Review: c.reviews([]review.Row{f.Row})[0], Findings: findings(f.History), Reported: reportNotes(f.Notes),
		History: c.api.entries(f.History),
	}
	if a := f.Appeal; a != nil {
		shown.Appeal = &ReviewAppeal{Appeal: c.api.sites.appealResource(a), Reason: a.Reason, MadeBy: text(&a.By), Erased: a.Erased}
	}
	return c.json(http.StatusOK, shown)
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

func (c *call) eraseReports() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	if _, err := c.api.review.Erase(c.r.Context(), c.who, k); err != nil {
		return err
	}
	commonHeaders(c.w.Header())
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
