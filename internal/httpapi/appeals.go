package httpapi

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/review"
)

const appealsPath = "/api/v1/appeals"

// AppealCreate is the body that appeals for a link.
type AppealCreate struct {
	Named

	Reason string `json:"reason" minLength:"1" maxLength:"1000" doc:"Why the decision is wrong; at most 1,000 bytes."`
}

// AppealMade is where the answer to an appeal will be read.
type AppealMade struct {
	Token string `json:"token" doc:"Whoever has it may read the answer. It is shown this once."`
	URL   string `json:"url" format:"uri" doc:"A page for people that shows the answer."`
}

// Appeal is an appeal as its maker sees it.
type Appeal struct {
	ShortURL   string     `json:"short_url" format:"uri"`
	State      string     `json:"state" enum:"open,answered"`
	CreatedAt  time.Time  `json:"created_at"`
	AnsweredAt *time.Time `json:"answered_at"`
	Safety     *string    `json:"safety" enum:"clean,warn,quarantined,blocked,legal" doc:"What was decided; null while the appeal is open."`
	LinkSafety *string    `json:"link_safety" enum:"clean,warn,quarantined,blocked,legal" doc:"What holds now: graver than what was decided while a ban means the link, and another where something else was decided since. Null: the link was deleted."`
	Banned     bool       `json:"banned" doc:"A ban holds the link to more than was decided."`
	Answer     *string    `json:"answer" doc:"A moderator's words; null: there are none, or they were erased."`
}

func (a *api) appealOperations(d describer) []*operation {
	code := codeParam()
	code.Example = "offer"
	token := &huma.Param{
		Name: "token", In: "path", Required: true, Description: "The token that the appeal was answered with.", Example: "AAAAAAAAAAAAAAAAAAAAAA",
		Schema: &huma.Schema{Type: huma.TypeString, Pattern: "^[A-Za-z0-9_-]{22}$"},
	}
	return []*operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: appealsPath, OperationID: "appeal", Summary: "Appeal against what was decided about a link",
				Description: "For a link that visitors are warned of or kept from: by a key of its workspace with links:write, and " +
					"without a key for a link that was made without one. A moderator answers once; then another appeal waits for " +
					"another decision.",
				MaxBodyBytes: maxReportBody, RequestBody: d.body(AppealCreate{}, "application/json"),
				Responses: d.answers(202, "The appeal was taken.", AppealMade{}, nil, 404, 408, 409, 413, 415, 429, 507),
			},
			action: auth.ChangeLink, open: true, owned: true, affords: (*call).affordAppeal, serve: (*call).appeal,
			examples: []example{
				{name: "code", summary: "For a link that was blocked", body: `{"code":"sale","reason":"This is our own sale. The report was a mistake."}`},
			},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: appealsPath + "/{token}", OperationID: "get-appeal", Summary: "Read the answer to an appeal",
				Parameters: []*huma.Param{token}, Responses: d.answers(200, "The appeal.", Appeal{}, nil, 404),
			},
			open: true, serve: (*call).getAppeal,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: linksPath + "/{code}/appeal", OperationID: "link-appeal", Summary: "Show the newest appeal for a link",
				Parameters: []*huma.Param{code, domainParam()}, Responses: d.answers(200, "The appeal.", Appeal{}, nil, 404),
			},
			action: auth.ReadLink, serve: (*call).linkAppeal,
		},
	}
}

// appealResource returns an appeal as the API shows it.
func (s sites) appealResource(a *review.Appealed) Appeal {
	shown := Appeal{ShortURL: s.shortURL(a.Link.Key), State: "open", CreatedAt: a.At, Banned: a.Banned}
	if a.Now != nil {
		holds := a.Now.Safety.String()
		shown.LinkSafety = &holds
	}
	if !a.IsOpen() {
		safety := a.Safety.String()
		shown.State, shown.AnsweredAt, shown.Safety, shown.Answer = "answered", &a.Answered, &safety, text(&a.Answer)
	}
	return shown
}

func (c *call) appeal() error {
	var body AppealCreate
	k, err := c.about(&body, &body.Named)
	if err != nil {
		return err
	}
	token, err := c.api.review.Appeal(c.r.Context(), c.now, c.who, k, body.Reason)
	if err != nil {
		return err
	}
	return c.json(http.StatusAccepted, AppealMade{Token: token, URL: c.api.sites.base + "/appeal?token=" + token})
}

func (c *call) getAppeal() error {
	a, err := c.api.review.AppealBy(c.r.Context(), c.r.PathValue("token"))
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.api.sites.appealResource(&a))
}

func (c *call) linkAppeal() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	a, err := c.api.review.AppealOf(c.r.Context(), c.who, k)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.api.sites.appealResource(&a))
}
