package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Review is a link under review. Whatever strangers wrote is in ReviewFile.
type Review struct {
	Case          string         `json:"case"` // of a refused create, which has no link; "" = it is of a link
	Domain        string         `json:"domain"`
	ShortCode     string         `json:"short_code"`
	ShortURL      string         `json:"short_url"`
	State         string         `json:"state"`   // open or closed
	Sources       []string       `json:"sources"` // some of policy, report, appeal and blocked
	Score         int            `json:"score"`   // of the policy, 0 to 100
	Host          string         `json:"host"`    // where the link led when the review was opened
	WorkspaceID   string         `json:"workspace_id"`
	OpenedAt      time.Time      `json:"opened_at"`
	DueAt         time.Time      `json:"due_at"`
	Overdue       bool           `json:"overdue"`
	Reports       int            `json:"reports"`
	Categories    map[string]int `json:"categories"` // of the reports
	FirstReportAt *time.Time     `json:"first_report_at"`
	LastReportAt  *time.Time     `json:"last_report_at"`
	ClosedAt      *time.Time     `json:"closed_at"`
	DecidedBy     string         `json:"decided_by"`
	Decision      string         `json:"decision"`
	Link          *Link          `json:"link"` // as it is now; nil = deleted
}

// ReviewPage is one page of the queue; NextCursor is empty at its end.
type ReviewPage struct {
	Reviews    []Review `json:"reviews"`
	NextCursor string   `json:"next_cursor"`
}

// Finding is one thing that the policy saw.
type Finding struct {
	Signal   string `json:"signal"`
	Points   int    `json:"points"`
	Evidence string `json:"evidence"`
}

// ReviewFile is all that is known about a link under review.
type ReviewFile struct {
	Review

	Findings []Finding      `json:"findings"`
	Reported []ReportNote   `json:"reported"` // the newest first
	Appeal   *ReviewAppeal  `json:"appeal"`   // the newest; nil = none
	History  []JournalEntry `json:"history"`  // the newest first
}

// ReportNote is what is kept of a report.
type ReportNote struct {
	At       time.Time `json:"at"`
	Category string    `json:"category"`
	Text     string    `json:"text"`
	Contact  string    `json:"contact"`
	Erased   bool      `json:"erased"`
}

// ReviewAppeal is an appeal as moderators see it.
type ReviewAppeal struct {
	Appeal

	Reason string `json:"reason"`
	MadeBy string `json:"made_by"` // id of a key; "" = nobody's
	Erased bool   `json:"erased"`
}

// ReviewQuery chooses reviews and their order; zero fields leave it to the server.
type ReviewQuery struct {
	Cursor    string // NextCursor of the page before, with the same other fields
	Limit     int    // 1–100
	State     string // open or closed
	Source    string // policy, report, appeal or blocked
	Category  string
	MinScore  int
	Host      string
	Workspace string
	Overdue   bool
	Sort      string // due_at, -score, -reports or -opened_at
}

const reviewsPath = "/api/v1/reviews"

// Reviews returns a page of the links that wait for a moderator. It takes the scope
// admin, as all calls about reviews do.
func (c *Moderation) Reviews(ctx context.Context, query ReviewQuery) (ReviewPage, error) {
	q := url.Values{}
	setTexts(q, map[string]string{
		"cursor": query.Cursor, "state": query.State, "source": query.Source, "category": query.Category,
		"host": query.Host, "workspace": query.Workspace, "sort": query.Sort,
	})
	if query.Limit > 0 {
		q.Set("limit", strconv.Itoa(query.Limit))
	}
	if query.MinScore > 0 {
		q.Set("min_score", strconv.Itoa(query.MinScore))
	}
	if query.Overdue {
		q.Set("overdue", "true")
	}
	var p ReviewPage
	err := c.call(ctx, http.MethodGet, reviewsPath, q, nil, &p)
	return p, err
}

// Review returns all that is known about a link under review, or once under review.
func (c *Moderation) Review(ctx context.Context, code string, options ...LinkOption) (ReviewFile, error) {
	var f ReviewFile
	err := c.about(ctx, http.MethodGet, reviewPath(code), options, nil, &f)
	return f, err
}

// Decision is what a moderator decides about a link.
type Decision struct {
	Code   string `json:"code"`
	Domain string `json:"domain,omitempty"`
	Safety string `json:"safety"` // clean, warn, quarantined, blocked or legal
	Reason string `json:"reason"` // for the journal
}

// Decided is what became of a decision.
type Decided struct {
	Status   int      `json:"status"`   // 200, or the problem's
	Sequence *uint64  `json:"sequence"` // of the journal's entry; nil = nothing was decided
	Closed   bool     `json:"closed"`   // the link was under review, and is no more
	Link     *Link    `json:"link"`     // as it is now
	HeldBy   *Ban     `json:"held_by"`  // the ban that holds the link to more than was decided; nil = none
	Problem  *Problem `json:"problem"`
}

// DecideMany decides about up to 100 links and returns a result for each, in order. The
// error is for the whole call.
func (c *Moderation) DecideMany(ctx context.Context, decisions []Decision) ([]Decided, error) {
	if decisions == nil {
		decisions = []Decision{}
	}
	var answer struct {
		Results []Decided `json:"results"`
	}
	err := c.call(ctx, http.MethodPost, reviewsPath+"/decisions", nil, map[string]any{"decisions": decisions}, &answer)
	if err == nil && len(answer.Results) != len(decisions) {
		err = &Problem{Title: "the response contains " + strconv.Itoa(len(answer.Results)) + " results", Status: http.StatusMultiStatus}
	}
	return answer.Results, err
}

// AnswerAppeal answers the open appeal for a link, once. The answer is for the owner.
func (c *Moderation) AnswerAppeal(ctx context.Context, code, safety, answer string, options ...LinkOption) (Decided, error) {
	var done Decided
	err := c.about(ctx, http.MethodPost, reviewPath(code)+"/answer", options, map[string]string{"safety": safety, "answer": answer}, &done)
	return done, err
}

// Case is a destination that creates were refused because of its score.
type Case struct {
	Review

	LongURL     string         `json:"long_url"`   // "" once erased
	CreatedBy   string         `json:"created_by"` // id of the key of the first create; "" = none, or erased
	Refused     int            `json:"refused"`    // creates before the decision
	LastRefused time.Time      `json:"last_refused_at"`
	Everyone    bool           `json:"everyone"` // the decision is for all workspaces
	Findings    []Finding      `json:"findings"`
	Appeal      *ReviewAppeal  `json:"appeal"`  // the newest; nil = none
	History     []JournalEntry `json:"history"` // the newest first
}

// CaseDecision is what a moderator decides about a refused destination.
type CaseDecision struct {
	Safety   string `json:"safety"` // clean, warn and quarantined allow links to it, blocked and legal refuse creates
	Reason   string `json:"reason"` // for the journal
	Everyone bool   `json:"everyone,omitempty"`
	Reply    bool   `json:"reply,omitempty"` // the reason is also the reply to an open appeal
}

// Case returns the case of a refused create.
func (c *Moderation) Case(ctx context.Context, id string) (Case, error) {
	var found Case
	err := c.call(ctx, http.MethodGet, casesPath+url.PathEscape(id), nil, nil, &found)
	return found, err
}

// DecideCase allows or refuses a destination. The create has to be sent again.
func (c *Moderation) DecideCase(ctx context.Context, id string, d CaseDecision) (Case, error) {
	var done Case
	err := c.call(ctx, http.MethodPost, casesPath+url.PathEscape(id)+"/decision", nil, d, &done)
	return done, err
}

// EraseCase erases the case of a refused create before its 30 days have passed.
func (c *Moderation) EraseCase(ctx context.Context, id, reason string) error {
	return c.call(ctx, http.MethodDelete, casesPath+url.PathEscape(id), pageQuery(0, map[string]string{"reason": reason}), nil, nil)
}

const casesPath = "/api/v1/cases/"

// EraseReports erases what strangers wrote about a link.
func (c *Moderation) EraseReports(ctx context.Context, code string, options ...LinkOption) error {
	return c.about(ctx, http.MethodDelete, reviewPath(code)+"/texts", options, nil, nil)
}

func reviewPath(code string) string { return reviewsPath + "/" + url.PathEscape(code) }
