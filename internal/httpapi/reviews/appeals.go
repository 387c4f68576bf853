package reviews

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/httpapi/kernel"
	"curt/internal/httpapi/links"
	"curt/internal/link"
	"curt/internal/review"
)

const appealsPath = "/api/v1/appeals"

// AppealCreate is the body that appeals for a link.
type AppealCreate struct {
	Named

	Case   kernel.Opt[string] `json:"case" required:"false" format:"uuid" doc:"The case of a refused create, instead of a link."`
	Reason string             `json:"reason" minLength:"1" maxLength:"1000" doc:"Why the decision is wrong, in at most 1,000 bytes."`
}

// AppealMade is where the answer to an appeal will be read.
type AppealMade struct {
	Token string `json:"token" doc:"Grants access to the answer. Shown only once."`
	URL   string `json:"url" format:"uri" doc:"The web page with the answer."`
}

// Appeal is an appeal as its maker sees it.
type Appeal struct {
	ShortURL   string     `json:"short_url" doc:"The link; empty for a refused create."`
	Case       string     `json:"case,omitzero" format:"uuid" doc:"The case of a refused create; absent for a link."`
	State      string     `json:"state" enum:"open,answered"`
	CreatedAt  time.Time  `json:"created_at"`
	AnsweredAt *time.Time `json:"answered_at"`
	Safety     *string    `json:"safety" enum:"clean,warn,quarantined,blocked,legal" doc:"The decision; null while the appeal is open, and if the content of the link was removed before one."`
	LinkSafety *string    `json:"link_safety" enum:"clean,warn,quarantined,blocked,legal" doc:"The current safety of the link. Differs from the decision if a ban applies or a later decision was made. Null: the link was deleted, or its content was removed after it had expired."`
	Banned     bool       `json:"banned" doc:"A ban restricts the link further than the decision."`
	Answer     *string    `json:"answer" doc:"The moderator's reply; null: none, or erased."`
}

func (in *intake) appealOperations(d kernel.Describer) []*kernel.Operation {
	code := kernel.CodeParam()
	code.Example = "offer"
	token := &huma.Param{
		Name: "token", In: "path", Required: true, Description: "The token from the response that created the appeal.", Example: "AAAAAAAAAAAAAAAAAAAAAA",
		Schema: &huma.Schema{Type: huma.TypeString, Pattern: "^[A-Za-z0-9_-]{22}$"},
	}
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: appealsPath, OperationID: "appeal", Summary: "Appeal a decision about a link or a refused create",
				Description: "For a flagged or blocked link, or with case for a create that was refused because of its score. Requires a key of its " +
					"workspace with links:write, or no key for a link that was created, or a create that was refused, without one. A moderator answers each appeal once; the next appeal is possible " +
					"after a new decision.",
				MaxBodyBytes: maxReportBody, RequestBody: d.Body(AppealCreate{}, "application/json"),
				Responses: d.Answers(202, "The appeal was received.", AppealMade{}, nil, 404, 408, 409, 413, 415, 429, 507),
			},
			Action: auth.ChangeLink, Open: true, Owned: true, Affords: func(c *kernel.Call) error { return in.appeals.MayAppeal(c.R.Context(), c.Now, c.Who) }, Serve: kernel.Reply(http.StatusAccepted, in.appeal),
			Examples: []kernel.Example{
				{Name: "code", Summary: "For a link that was blocked", Body: `{"code":"sale","reason":"This is our own sale. The report was a mistake."}`},
			},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: appealsPath + "/{token}", OperationID: "get-appeal", Summary: "Get an appeal by its token",
				Parameters: []*huma.Param{token}, Responses: d.Answers(200, "The appeal.", Appeal{}, nil, 404),
			},
			Open: true, Serve: kernel.Reply(http.StatusOK, in.getAppeal),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: links.Path + "/{code}/appeal", OperationID: "link-appeal", Summary: "Get the newest appeal of a link",
				Parameters: []*huma.Param{code, kernel.DomainParam()}, Responses: d.Answers(200, "The appeal.", Appeal{}, nil, 404),
			},
			Action: auth.ReadLink, Serve: kernel.Reply(http.StatusOK, links.Keyed(in.links, in.linkAppeal)),
		},
	}
}

// appealResource returns an appeal as the API shows it.
func appealResource(l *links.Links, a *review.Appealed) Appeal {
	shown := Appeal{State: "open", CreatedAt: a.At, Banned: a.Banned}
	if a.Link.IsDestination() {
		shown.Case = a.Link.ID.String()
	} else {
		shown.ShortURL = l.ShortURL(a.Link.Key)
	}
	if a.Now != nil {
		holds := a.Now.Safety.String()
		shown.LinkSafety = &holds
	}
	if !a.IsOpen() {
		shown.State, shown.AnsweredAt, shown.Safety, shown.Answer = "answered", &a.Answered, decided(a.Safety, a.AnsweredBy), kernel.Optional(&a.Answer)
	}
	return shown
}

func (in *intake) appeal(c *kernel.Call) (created AppealMade, err error) {
	var body AppealCreate
	if err := kernel.Decode(c.Body, &body); err != nil {
		return created, err
	}
	var token string
	if body.Case.Value != "" {
		token, err = in.appealCase(c, &body)
	} else {
		k, named := in.named(&body.Named)
		if err = in.challenge(c, named); err == nil {
			token, err = in.appeals.Appeal(c.R.Context(), c.Now, c.Who, k, body.Reason)
		}
	}
	if err != nil {
		return created, err
	}
	return AppealMade{Token: token, URL: in.links.Hosts.Load().Base() + "/appeal?token=" + token}, nil
}

func (in *intake) appealCase(c *kernel.Call, body *AppealCreate) (token string, err error) {
	if body.Named != (Named{}) {
		return "", kernel.BadField("case", "expected either case, or a link")
	}
	id, err := caseID(body.Case.Value)
	if err = in.challenge(c, err); err != nil {
		return "", err
	}
	return in.appeals.AppealCase(c.R.Context(), c.Now, c.Who, id, body.Reason)
}

func (in *intake) getAppeal(c *kernel.Call) (shown Appeal, err error) {
	a, err := in.appeals.AppealBy(c.R.Context(), c.R.PathValue("token"))
	if err != nil {
		return shown, err
	}
	return appealResource(in.links, &a), nil
}

func (in *intake) linkAppeal(c *kernel.Call, k link.Key) (shown Appeal, err error) {
	a, err := in.appeals.AppealOf(c.R.Context(), c.Who, k)
	if err != nil {
		return shown, err
	}
	return appealResource(in.links, &a), nil
}
