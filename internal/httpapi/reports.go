package httpapi

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/review"
)

const (
	reportsPath = "/api/v1/reports"
	// maxReportBody bounds the body of a report or an appeal in bytes: its texts fit even
	// when JSON escapes each byte.
	maxReportBody = 16 << 10
)

// Named is how a stranger names a link: by one of the two.
type Named struct {
	ShortURL opt[string] `json:"short_url" required:"false" maxLength:"2048" doc:"The short URL, or"`
	Code     opt[string] `json:"code" required:"false" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"the code of the link, with"`
	Domain   opt[string] `json:"domain" required:"false" doc:"its domain; without it the default domain."`
}

// ReportCreate is the body that reports a link.
type ReportCreate struct {
	Named

	Category string      `json:"category" enum:"phishing,malware,spam,illegal,other" doc:"What is wrong with the link."`
	Text     opt[string] `json:"text" required:"false" maxLength:"1000" doc:"What was seen, in your words; at most 1,000 bytes."`
	Contact  opt[string] `json:"contact" required:"false" maxLength:"254" doc:"Where you can be asked; nobody else sees it, and it is erased with the text."`
}

func (a *api) reportOperations(d describer) []*operation {
	return []*operation{{
		Operation: huma.Operation{
			Method: http.MethodPost, Path: reportsPath, OperationID: "report-link", Summary: "Report a link",
			Description: "Puts a link before the moderators of this service. Anybody may, a number of times an hour. The answer " +
				"is the same whether or not there is such a link.",
			MaxBodyBytes: maxReportBody, RequestBody: d.body(ReportCreate{}, "application/json"),
			Responses: d.answers(202, "The report was taken.", nil, nil, 408, 413, 415, 429, 507),
		},
		open: true, affords: (*call).affordReport, serve: (*call).reportLink,
		examples: []example{
			{name: "phishing", summary: "A page that asks for passwords", body: `{"short_url":"https://curt.test/manual","category":"phishing","text":"It looks like my bank."}`},
		},
	}}
}

func (c *call) reportLink() error {
	var body ReportCreate
	k, err := c.about(&body, &body.Named)
	if err != nil {
		return err
	}
	err = c.api.review.Report(c.r.Context(), c.now, c.who, review.Complaint{
		Link: k, Category: body.Category, Text: body.Text.Value, Contact: body.Contact.Value,
	})
	if err != nil {
		return err
	}
	commonHeaders(c.w.Header())
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}

// about reads what somebody wants to say about a link, which the body names, and asks
// for what the operator wants of strangers. Who shows a key is none.
func (c *call) about(body any, n *Named) (link.Key, error) {
	if err := decode(c.body, body); err != nil {
		return link.Key{}, err
	}
	k, err := c.named(n)
	if err == nil && c.who.IsAnonymous() {
		err = c.api.challenges.Verify(c.r.Context(), c.r)
	}
	return k, err
}

// named returns the link that a body names. Whether there is one is another question.
func (c *call) named(n *Named) (link.Key, error) {
	short, code := n.ShortURL, n.Code
	switch {
	case short.Value != "" && (code.Value != "" || n.Domain.Value != ""):
		return link.Key{}, badField("short_url", "give it alone, or code and domain")
	case short.Value != "":
		k, ok := review.ParseLink(short.Value, "", c.api.links.Domain)
		if !ok {
			return k, badField("short_url", "is no short URL of this service")
		}
		return k, nil
	case code.Value == "":
		return link.Key{}, badField("short_url", "is required, or code")
	case !link.ValidCode(code.Value):
		return link.Key{}, badField("code", "want 1 to 64 characters of A-Z a-z 0-9 - _")
	}
	domain, ok := c.api.links.Domain(n.Domain.Value)
	if !ok {
		return link.Key{}, badField("domain", "is no domain of this service")
	}
	return link.Key{Domain: domain, Code: link.Code(code.Value)}, nil
}

// ReportNote is what is kept of a report.
type ReportNote struct {
	At       time.Time `json:"at"`
	Category string    `json:"category" enum:"phishing,malware,spam,illegal,other"`
	Text     string    `json:"text" doc:"A stranger wrote it."`
	Contact  string    `json:"contact" doc:"A stranger wrote it."`
	Erased   bool      `json:"erased" doc:"Text and contact are gone."`
}

func reportNotes(notes []moderation.Note) []ReportNote {
	shown := make([]ReportNote, len(notes))
	for i, n := range notes {
		shown[i] = ReportNote{At: n.At, Category: n.Category.String(), Text: n.Text, Contact: n.Contact, Erased: n.Erased}
	}
	return shown
}
