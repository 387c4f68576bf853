// Package reviews is the API of links under review: reports of visitors, appeals of owners, the
// queue of moderators and what they decide there.
//
// Read this file first, where a review begins; reviews.go is the queue, decide.go its end,
// appeals.go what owners object.
package reviews

import (
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/httpapi/decisions"
	"curt/internal/httpapi/kernel"
	"curt/internal/httpapi/links"
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

// Reviews are the operations on reports, appeals and the queue of reviews.
type Reviews struct {
	Links     *links.Links
	Reviews   *review.Service
	Challenge review.Challenge // of visitors who report or appeal
	Decisions *decisions.Moderation
}

// Operations are what the API can do with reports, appeals and reviews.
func (rs *Reviews) Operations(d kernel.Describer) []*kernel.Operation {
	in := &intake{links: rs.Links, reports: rs.Reviews.Reports, appeals: rs.Reviews.Appeals, challenger: rs.Challenge}
	q := &queue{links: rs.Links, reviewed: rs.Reviews.Queue, refused: rs.Reviews.Refused, decisions: rs.Decisions}
	return slices.Concat([]*kernel.Operation{in.reportOperation(d)}, in.appealOperations(d), q.reviewOperations(d), q.caseOperations(d))
}

// intake takes reports of visitors and appeals of owners.
type intake struct {
	links      *links.Links
	reports    *review.Reports
	appeals    *review.Appeals
	challenger review.Challenge
}

// Named is how a stranger names a link: by one of the two.
type Named struct {
	ShortURL kernel.Opt[string] `json:"short_url" required:"false" maxLength:"2048" doc:"The short URL. Either this, or code and domain."`
	Code     kernel.Opt[string] `json:"code" required:"false" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"The code of the link, instead of short_url."`
	Domain   kernel.Opt[string] `json:"domain" required:"false" doc:"The domain of the link, with code. Default: the default domain."`
}

// ReportCreate is the body that reports a link.
type ReportCreate struct {
	Named

	Category string             `json:"category" enum:"phishing,malware,spam,illegal,other" doc:"The reason of the report."`
	Text     kernel.Opt[string] `json:"text" required:"false" maxLength:"1000" doc:"Details, in at most 1,000 bytes."`
	Contact  kernel.Opt[string] `json:"contact" required:"false" maxLength:"254" doc:"Contact for questions, such as an e-mail address; visible to moderators only and erased with the text."`
}

func (in *intake) reportOperation(d kernel.Describer) *kernel.Operation {
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodPost, Path: reportsPath, OperationID: "report-link", Summary: "Report a link",
			Description: "Reports a link to the moderators of this service. Open to everyone, with an hourly limit. The response " +
				"is the same whether or not the link exists.",
			MaxBodyBytes: maxReportBody, RequestBody: d.Body(ReportCreate{}, "application/json"),
			Responses: d.Answers(202, "The report was received.", nil, nil, 408, 413, 415, 429, 507),
		},
		Open: true, Affords: func(c *kernel.Call) error { return in.reports.MayReport(c.R.Context(), c.Now, c.Who) }, Serve: kernel.Done(http.StatusAccepted, in.report),
		Examples: []kernel.Example{
			{Name: "phishing", Summary: "A phishing page", Body: `{"short_url":"https://curt.test/manual","category":"phishing","text":"It looks like my bank."}`},
		},
	}
}

func (in *intake) report(c *kernel.Call) error {
	var body ReportCreate
	k, err := in.about(c, &body, &body.Named)
	if err != nil {
		return err
	}
	return in.reports.Report(c.R.Context(), c.Now, c.Who, review.Complaint{
		Link: k, Category: body.Category, Text: body.Text.Value, Contact: body.Contact.Value,
	})
}

// about reads what somebody wants to say about a link, which the body names, and asks
// for what the operator wants of strangers. Who shows a key is none.
func (in *intake) about(c *kernel.Call, body any, n *Named) (link.Key, error) {
	if err := kernel.Decode(c.Body, body); err != nil {
		return link.Key{}, err
	}
	k, err := in.named(n)
	return k, in.challenge(c, err)
}

// challenge asks an anonymous caller for what the operator wants, unless the request is invalid.
func (in *intake) challenge(c *kernel.Call, err error) error {
	if err == nil && c.Who.IsAnonymous() {
		err = in.challenger.Verify(c.R.Context(), c.R)
	}
	return err
}

// named returns the link that a body names. Whether there is one is another question.
func (in *intake) named(n *Named) (link.Key, error) {
	short, code := n.ShortURL, n.Code
	switch {
	case short.Value != "" && (code.Value != "" || n.Domain.Value != ""):
		return link.Key{}, kernel.BadField("short_url", "expected either short_url, or code and domain")
	case short.Value != "":
		k, ok := review.ParseLink(short.Value, "", in.links.Service.Domain)
		if !ok {
			return k, kernel.BadField("short_url", "not a short URL of this service")
		}
		return k, nil
	case code.Value == "":
		return link.Key{}, kernel.BadField("short_url", "short_url or code is required")
	case !link.ValidCode(code.Value):
		return link.Key{}, kernel.BadField("code", "expected 1 to 64 characters of A-Z a-z 0-9 - _")
	}
	domain, ok := in.links.Service.Domain(n.Domain.Value)
	if !ok {
		return link.Key{}, kernel.BadField("domain", "unknown domain")
	}
	return link.Key{Domain: domain, Code: link.Code(code.Value)}, nil
}

// ReportNote is what is kept of a report.
type ReportNote struct {
	At       time.Time `json:"at"`
	Category string    `json:"category" enum:"phishing,malware,spam,illegal,other"`
	Text     string    `json:"text" doc:"Untrusted text."`
	Contact  string    `json:"contact" doc:"Untrusted text."`
	Erased   bool      `json:"erased" doc:"Text and contact were erased."`
}

func reportNotes(notes []moderation.Note) []ReportNote {
	shown := make([]ReportNote, len(notes))
	for i, n := range notes {
		shown[i] = ReportNote{At: n.At, Category: n.Category.String(), Text: n.Text, Contact: n.Contact, Erased: n.Erased}
	}
	return shown
}
