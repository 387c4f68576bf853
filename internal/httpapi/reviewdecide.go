package httpapi

import (
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/review"
)

const (
	decisionsPath = reviewsPath + "/decisions"
	// maxDecisionsBody is 8 KiB for each of 100 decisions: a reason fits when JSON escapes
	// each byte.
	maxDecisionsBody = 1 << 20
)

// DecisionCreate is what a moderator decides about one link.
type DecisionCreate struct {
	Code   string      `json:"code" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Domain opt[string] `json:"domain" required:"false" doc:"The domain of the link; without it the default domain."`
	Safety string      `json:"safety" enum:"clean,warn,quarantined,blocked,legal"`
	Reason string      `json:"reason" minLength:"1" maxLength:"1024" doc:"For the journal; at most 1,024 bytes."`
}

// DecisionsCreate is the body of many decisions.
type DecisionsCreate struct {
	Decisions []DecisionCreate `json:"decisions" minItems:"1" maxItems:"100" nullable:"false"`
}

// Decided is what became of a decision.
type Decided struct {
	Status   int      `json:"status" doc:"200, or that of the problem."`
	Sequence *uint64  `json:"sequence" doc:"Of the journal's entry; null: nothing was decided."`
	Closed   bool     `json:"closed" doc:"The link was under review, and is no more."`
	Link     *Link    `json:"link,omitzero" doc:"As it is now: a ban may hold it to more than was decided."`
	HeldBy   *Ban     `json:"held_by,omitzero" doc:"The ban that holds the link to more than was decided; absent: none does."`
	Problem  *Problem `json:"problem,omitzero"`
}

// DecisionResults says what became of each decision, in their order.
type DecisionResults struct {
	Results []Decided `json:"results" nullable:"false"`
}

// AnswerCreate is the body that answers an appeal.
type AnswerCreate struct {
	Safety string `json:"safety" enum:"clean,warn,quarantined,blocked,legal" doc:"What stands from now on."`
	Answer string `json:"answer" minLength:"1" maxLength:"1024" doc:"For the owner to read; at most 1,024 bytes."`
}

func (a *api) decideOperation(d describer) *operation {
	return &operation{
		Operation: huma.Operation{
			Method: http.MethodPost, Path: decisionsPath, OperationID: "decide-reviews", Summary: "Decide about up to 100 links",
			Description: "Each decision is written to the journal, takes effect and closes the review of its link. An open appeal " +
				"is answered by it, without words. Links that are not under review can be decided about as well. One decision " +
				"that is refused does not keep the others from being made.",
			MaxBodyBytes: maxDecisionsBody, RequestBody: d.body(DecisionsCreate{}, "application/json"),
			Responses: d.answers(207, "A result for each decision.", DecisionResults{}, nil, 408, 413, 415, 507),
		},
		action: auth.Moderate, serve: (*call).decideReviews,
		examples: []example{
			{name: "two", summary: "One link is blocked, one is not there", body: `{"decisions":[{"code":"offer","safety":"blocked","reason":"asks for passwords"},{"code":"nobody","safety":"clean","reason":"harmless"}]}`},
		},
	}
}

func (a *api) answerOperation(d describer, params []*huma.Param) *operation {
	return &operation{
		Operation: huma.Operation{
			Method: http.MethodPost, Path: reviewsPath + "/{code}/answer", OperationID: "answer-appeal", Summary: "Answer the appeal for a link, once",
			MaxBodyBytes: maxReportBody, RequestBody: d.body(AnswerCreate{}, "application/json"),
			Parameters: params, Responses: d.answers(200, "The appeal is answered and the review closed.", Decided{}, nil, 404, 408, 409, 413, 415, 507),
		},
		action: auth.Moderate, serve: (*call).answerAppeal,
		examples: []example{
			{name: "granted", summary: "The owner is right", body: `{"safety":"clean","answer":"You are right, the report was wrong. The link works again."}`},
		},
	}
}

// parseSafety reads a safety; 0 is none.
func parseSafety(name string) link.Safety {
	s, _ := link.ParseSafety(name)
	return s
}

func (c *call) decideReviews() error {
	var body DecisionsCreate
	if err := decode(c.body, &body); err != nil {
		return err
	}
	if len(body.Decisions) == 0 || len(body.Decisions) > moderation.MaxOrders {
		return badField("decisions", "want 1 to 100")
	}
	results := make([]Decided, len(body.Decisions))
	var rulings []review.Ruling
	var of []int
	for i := range body.Decisions {
		b := &body.Decisions[i]
		domain, ok := c.api.links.Domain(b.Domain.Value)
		if !ok || !link.ValidCode(b.Code) {
			results[i] = c.decided(&review.Ruled{Err: link.ErrNotFound})
			continue
		}
		k := link.Key{Domain: domain, Code: link.Code(b.Code)}
		rulings, of = append(rulings, review.Ruling{Key: k, Safety: parseSafety(b.Safety), Reason: b.Reason}), append(of, i)
	}
	if len(rulings) > 0 {
		done, err := c.api.review.Decide(c.r.Context(), c.now, c.who, rulings)
		if err != nil {
			return err
		}
		for i := range done {
			results[of[i]] = c.decided(&done[i])
		}
	}
	return c.json(http.StatusMultiStatus, DecisionResults{Results: slices.Clip(results)})
}

// decided shows what became of a decision.
func (c *call) decided(r *review.Ruled) Decided {
	d := Decided{Status: http.StatusOK, Sequence: bound(r.Entry.Sequence), Closed: r.Closed != nil}
	if r.Err != nil {
		p := c.api.explain(c.r, r.Err)
		d.Status, d.Problem = p.Status, &p
		return d
	}
	shown := c.api.sites.resource(&r.Link, c.now, c.clicks(c.r.Context(), r.Link.Key)[0])
	d.Link = &shown
	if r.Ban.Sequence != 0 {
		d.HeldBy = &c.api.bans([]moderation.Ban{{Entry: r.Ban}})[0]
	}
	return d
}

func (c *call) answerAppeal() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	var body AnswerCreate
	if err := decode(c.body, &body); err != nil {
		return err
	}
	done, err := c.api.review.Answer(c.r.Context(), c.now, c.who, review.Ruling{Key: k, Safety: parseSafety(body.Safety), Reason: body.Answer})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.decided(&done))
}
