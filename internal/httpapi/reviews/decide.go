package reviews

import (
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/httpapi/decisions"
	"curt/internal/httpapi/kernel"
	"curt/internal/httpapi/links"
	"curt/internal/link"
	"curt/internal/moderation/moderator"
	"curt/internal/review"
)

const (
	// DecisionsPath takes many decisions.
	DecisionsPath = Path + "/decisions"
	// maxDecisionsBody is 8 KiB for each of 100 decisions: a reason fits when JSON escapes
	// each byte.
	maxDecisionsBody = 1 << 20
)

// DecisionCreate is what a moderator decides about one link.
type DecisionCreate struct {
	Code   string             `json:"code" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Domain kernel.Opt[string] `json:"domain" required:"false" doc:"The domain of the link. Default: the default domain."`
	Safety string             `json:"safety" enum:"clean,warn,quarantined,blocked,legal"`
	Reason string             `json:"reason" minLength:"1" maxLength:"1024" doc:"The reason, for the journal; at most 1,024 bytes."`
}

// DecisionsCreate is the body of many decisions.
type DecisionsCreate struct {
	Decisions []DecisionCreate `json:"decisions" minItems:"1" maxItems:"100" nullable:"false"`
}

// Decided is what became of a decision.
type Decided struct {
	Status   int             `json:"status" doc:"200, or the status of the problem."`
	Sequence *uint64         `json:"sequence" doc:"The number of the journal entry; null: nothing was decided."`
	Closed   bool            `json:"closed" doc:"The decision closed a review of the link."`
	Link     *links.Link     `json:"link,omitzero" doc:"The link now; a ban may restrict it further than the decision."`
	HeldBy   *decisions.Ban  `json:"held_by,omitzero" doc:"The ban that restricts the link further than the decision; absent: none."`
	Problem  *kernel.Problem `json:"problem,omitzero"`
}

// DecisionResults says what became of each decision, in their order.
type DecisionResults struct {
	Results []Decided `json:"results" nullable:"false"`
}

// AnswerCreate is the body that answers an appeal.
type AnswerCreate struct {
	Safety string `json:"safety" enum:"clean,warn,quarantined,blocked,legal" doc:"The new safety of the link."`
	Answer string `json:"answer" minLength:"1" maxLength:"1024" doc:"The reply to the owner; at most 1,024 bytes."`
}

func (q *queue) decideOperation(d kernel.Describer) *kernel.Operation {
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodPost, Path: DecisionsPath, OperationID: "decide-reviews", Summary: "Decide on up to 100 links",
			Description: "Each decision is written to the journal, takes effect and closes the review of its link. It also answers an open " +
				"appeal, without a reply. Links that are not under review can be decided as well. A refused decision " +
				"does not affect the others.",
			MaxBodyBytes: maxDecisionsBody, RequestBody: d.Body(DecisionsCreate{}, "application/json"),
			Responses: d.Answers(207, "One result per decision.", DecisionResults{}, nil, 408, 413, 415, 507),
		},
		Action: auth.Moderate, Serve: kernel.Take(http.StatusMultiStatus, q.decideReviews),
		Examples: []kernel.Example{
			{Name: "two", Summary: "One link is blocked, one does not exist", Body: `{"decisions":[{"code":"offer","safety":"blocked","reason":"asks for passwords"},{"code":"missing","safety":"clean","reason":"harmless"}]}`},
		},
	}
}

func (q *queue) answerOperation(d kernel.Describer, params []*huma.Param) *kernel.Operation {
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodPost, Path: Path + "/{code}/answer", OperationID: "answer-appeal", Summary: "Answer an appeal",
			MaxBodyBytes: maxReportBody, RequestBody: d.Body(AnswerCreate{}, "application/json"),
			Parameters: params, Responses: d.Answers(200, "The appeal was answered and the review closed.", Decided{}, nil, 404, 408, 409, 413, 415, 507),
		},
		Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, links.Keyed(q.links, q.answerAppeal)),
		Examples: []kernel.Example{
			{Name: "granted", Summary: "The appeal is granted", Body: `{"safety":"clean","answer":"You are right, the report was wrong. The link works again."}`},
		},
	}
}

// parseSafety reads a safety; 0 is none.
func parseSafety(name string) link.Safety {
	s, _ := link.ParseSafety(name)
	return s
}

func (q *queue) decideReviews(c *kernel.Call, body *DecisionsCreate) (decided DecisionResults, err error) {
	if len(body.Decisions) == 0 || len(body.Decisions) > moderator.MaxOrders {
		return decided, kernel.BadField("decisions", "expected 1 to 100")
	}
	results := make([]Decided, len(body.Decisions))
	var rulings []review.Ruling
	var of []int
	for i := range body.Decisions {
		b := &body.Decisions[i]
		domain, ok := q.links.Service.Domain(b.Domain.Value)
		if !ok || !link.ValidCode(b.Code) {
			results[i] = q.decided(c, &review.Ruled{Err: link.ErrNotFound})
			continue
		}
		k := link.Key{Domain: domain, Code: link.Code(b.Code)}
		rulings, of = append(rulings, review.Ruling{Key: k, Safety: parseSafety(b.Safety), Reason: b.Reason}), append(of, i)
	}
	if len(rulings) > 0 {
		done, err := q.reviewed.Decide(c.R.Context(), c.Now, c.Who, rulings)
		if err != nil {
			return decided, err
		}
		for i := range done {
			results[of[i]] = q.decided(c, &done[i])
		}
	}
	return DecisionResults{Results: slices.Clip(results)}, nil
}

// decided shows what became of a decision.
func (q *queue) decided(c *kernel.Call, r *review.Ruled) Decided {
	d := Decided{Status: http.StatusOK, Sequence: kernel.Optional(&r.Entry.Sequence), Closed: r.Closed != nil}
	if r.Err != nil {
		p := c.Problem(r.Err)
		d.Status, d.Problem = p.Status, p
		return d
	}
	shown := q.links.Resource(&r.Link, c.Now, q.links.Clicks(c, r.Link.Key)[0])
	d.Link = &shown
	if r.Ban.Sequence != 0 {
		d.HeldBy = &q.decisions.Bans([]moderator.Ban{{Entry: r.Ban}})[0]
	}
	return d
}

func (q *queue) answerAppeal(c *kernel.Call, k link.Key) (decided Decided, err error) {
	var body AnswerCreate
	if err := kernel.Decode(c.Body, &body); err != nil {
		return decided, err
	}
	done, err := q.reviewed.Answer(c.R.Context(), c.Now, c.Who, review.Ruling{Key: k, Safety: parseSafety(body.Safety), Reason: body.Answer})
	if err != nil {
		return decided, err
	}
	return q.decided(c, &done), nil
}
