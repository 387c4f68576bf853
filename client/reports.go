package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// NewReport says what is wrong with a link, which is named by its short URL, or by its
// code and, where it is not the default one, its domain.
type NewReport struct {
	ShortURL string `json:"short_url,omitempty"`
	Code     string `json:"code,omitempty"`
	Domain   string `json:"domain,omitempty"`
	Category string `json:"category"`          // phishing, malware, spam, illegal or other
	Text     string `json:"text,omitempty"`    // what was seen, at most 1,000 bytes
	Contact  string `json:"contact,omitempty"` // where the reporter can be asked
}

// Report reports a link. The server says the same whether or not there is such a link.
func (c *Client) Report(ctx context.Context, r NewReport) error {
	return c.call(ctx, http.MethodPost, "/api/v1/reports", nil, r, nil)
}

// NewAppeal says why a decision about a link is wrong; the link is named as in a
// NewReport.
type NewAppeal struct {
	ShortURL string `json:"short_url,omitempty"`
	Code     string `json:"code,omitempty"`
	Domain   string `json:"domain,omitempty"`
	Case     string `json:"case,omitempty"` // of a refused create, instead of a link
	Reason   string `json:"reason"`         // at most 1,000 bytes
}

// AppealMade is where the answer to an appeal will be read.
type AppealMade struct {
	Token string `json:"token"` // for GetAppeal; shown this once
	URL   string `json:"url"`   // of a page for people
}

// Appeal is an appeal as its maker sees it.
type Appeal struct {
	ShortURL   string     `json:"short_url"`
	Case       string     `json:"case"`  // of a refused create; "" = it is for a link
	State      string     `json:"state"` // open or answered
	CreatedAt  time.Time  `json:"created_at"`
	AnsweredAt *time.Time `json:"answered_at"`
	Safety     string     `json:"safety"`      // what was decided; "" while it is open
	LinkSafety string     `json:"link_safety"` // what holds now; "" = the link was deleted
	Banned     bool       `json:"banned"`      // a ban holds the link to more than was decided
	Answer     string     `json:"answer"`
}

const appealsPath = "/api/v1/appeals"

// Appeal appeals for a link that visitors are warned of or kept from, once for each
// decision.
func (c *Moderation) Appeal(ctx context.Context, a NewAppeal) (AppealMade, error) {
	var made AppealMade
	err := c.call(ctx, http.MethodPost, appealsPath, nil, a, &made)
	return made, err
}

// GetAppeal returns the appeal of a token.
func (c *Moderation) GetAppeal(ctx context.Context, token string) (Appeal, error) {
	var a Appeal
	err := c.call(ctx, http.MethodGet, appealsPath+"/"+url.PathEscape(token), nil, nil, &a)
	return a, err
}

// LinkAppeal returns the newest appeal for a link.
func (c *Moderation) LinkAppeal(ctx context.Context, code string, options ...LinkOption) (Appeal, error) {
	var a Appeal
	err := c.below(ctx, http.MethodGet, code, "/appeal", options, nil, &a)
	return a, err
}
