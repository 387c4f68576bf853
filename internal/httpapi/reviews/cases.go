package reviews

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/httpapi/decisions"
	"curt/internal/httpapi/kernel"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/review"
)

const casePath = "/api/v1/cases/{case}"

// Case is a destination that the score refused, with what moderators know about it.
type Case struct {
	Review

	LongURL     *string                  `json:"long_url" doc:"The destination. Null: erased, 30 days after the create or the decision."`
	CreatedBy   *string                  `json:"created_by" doc:"The id of the key of the first create; null: without a key, or erased."`
	Refused     int                      `json:"refused" doc:"Number of refused creates before the decision."`
	LastRefused time.Time                `json:"last_refused_at"`
	Everyone    bool                     `json:"everyone" doc:"The decision is for all workspaces."`
	Findings    []abuse.Finding          `json:"findings" nullable:"false" doc:"The signals of the first create, highest score first."`
	Appeal      *ReviewAppeal            `json:"appeal,omitzero" doc:"The newest appeal; absent: none."`
	History     []decisions.JournalEntry `json:"history" nullable:"false" doc:"Decisions about the destination, newest first."`
}

// CaseDecision is what a moderator decides about a refused destination.
type CaseDecision struct {
	Safety   string           `json:"safety" enum:"clean,warn,quarantined,blocked,legal" doc:"The safety of links to the destination: blocked and legal refuse creates, the others allow them. Blocklists, bans and rules of the operator still apply."`
	Reason   string           `json:"reason" minLength:"1" maxLength:"1024" doc:"The reason, for the journal; at most 1,024 bytes."`
	Everyone kernel.Opt[bool] `json:"everyone" required:"false" doc:"Decide for all workspaces, and close their cases of this URL. Default: only for the workspace of the case."`
	Reply    kernel.Opt[bool] `json:"reply" required:"false" doc:"The reason is also the reply to an open appeal, visible to its creator."`
}

func (q *queue) caseOperations(d kernel.Describer) []*kernel.Operation {
	params := []*huma.Param{{
		Name: "case", In: "path", Required: true, Description: "The case, as named by the refused create and by the list of reviews.",
		Example: "019e830c-2e00-7a51-8c3e-5f0b6d2a9c41", Schema: &huma.Schema{Type: huma.TypeString, Format: "uuid"},
	}}
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: casePath, OperationID: "get-case", Summary: "Get the case of a refused destination",
				Parameters: params, Responses: d.Answers(200, "The case.", Case{}, nil, 404),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, q.getCase),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: casePath + "/decision", OperationID: "decide-case", Summary: "Allow or refuse a destination",
				Description: "For a create that was refused because of its score. The decision is written to the journal, closes the case and " +
					"answers an open appeal. Later creates of exactly this URL follow it, on every server. No link is created: send the create again. " +
					"A case can be decided again.",
				MaxBodyBytes: maxReportBody, RequestBody: d.Body(CaseDecision{}, "application/json"),
				Parameters: params, Responses: d.Answers(200, "The case with its decision.", Case{}, nil, 404, 408, 413, 415, 507),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, q.decideCase),
			Examples: []kernel.Example{
				{Name: "allowed", Summary: "The destination is harmless", Body: `{"safety":"clean","reason":"This is the new sign-in page of the company.","reply":true}`},
			},
		},
		q.eraseOperation(d, params),
	}
}

// eraseOperation erases a case before its time.
func (q *queue) eraseOperation(d kernel.Describer, params []*huma.Param) *kernel.Operation {
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodDelete, Path: casePath, OperationID: "erase-case", Summary: "Erase the case of a refused destination",
			Description: "Erases destination, key, findings and appeal at once, instead of 30 days after the create or the decision. Of a case that was " +
				"decided, the decision and a SHA-256 of the URL stay; of others, nothing. The journal records it.",
			Parameters: append(slices.Clip(params), kernel.QueryParam("reason", "The reason, for the journal.", &huma.Schema{Type: huma.TypeString})),
			Responses:  d.Answers(204, "The case was erased.", nil, nil, 404, 507),
		},
		Action: auth.Moderate, Serve: kernel.Done(http.StatusNoContent, q.eraseCase),
	}
}

func (q *queue) eraseCase(c *kernel.Call) error {
	id, err := caseID(c.R.PathValue("case"))
	if err != nil {
		return err
	}
	reason := c.Query.Get("reason")
	if reason == "" {
		reason = "erased"
	}
	return q.refused.EraseCase(c.R.Context(), c.Now, c.Who, id, reason)
}

// caseID returns the case that the path names.
func caseID(text string) (link.ID, error) {
	id, err := link.ParseID(text)
	if err != nil {
		return id, moderation.ErrNoDestination
	}
	return id, nil
}

func (q *queue) getCase(c *kernel.Call) (shown Case, err error) {
	id, err := caseID(c.R.PathValue("case"))
	if err != nil {
		return shown, err
	}
	f, err := q.refused.ShowCase(c.R.Context(), c.Who, id)
	if err != nil {
		return shown, err
	}
	return q.caseResource(c, &f), nil
}

func (q *queue) caseResource(c *kernel.Call, f *review.CaseFile) Case {
	shown := Case{
		Review: q.review(c, &f.Case), LongURL: kernel.Optional(&f.URL), CreatedBy: kernel.Optional(&f.CreatedBy), Refused: f.Refused, LastRefused: f.Last,
		Everyone: f.Everyone, Findings: []abuse.Finding{}, History: q.decisions.Entries(f.History),
	}
	if f.Evidence != "" {
		_ = json.Unmarshal([]byte(f.Evidence), &shown.Findings) // written by this service; a later release may write more
	}
	if a := f.Appeal; a != nil {
		shown.Appeal = &ReviewAppeal{Appeal: appealResource(q.links, a), Reason: a.Reason, MadeBy: kernel.Optional(&a.By), Erased: a.Erased}
	}
	return shown
}

func (q *queue) decideCase(c *kernel.Call) (shown Case, err error) {
	var body CaseDecision
	id, err := caseID(c.R.PathValue("case"))
	if err == nil {
		err = kernel.Decode(c.Body, &body)
	}
	if err != nil {
		return shown, err
	}
	_, err = q.refused.DecideCase(c.R.Context(), c.Now, c.Who, review.CaseRuling{
		ID: id, Safety: parseSafety(body.Safety), Reason: body.Reason, Everyone: body.Everyone.Value, Reply: body.Reply.Value,
	})
	if err != nil {
		return shown, err
	}
	return q.getCase(c)
}
