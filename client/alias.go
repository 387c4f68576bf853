package client

import (
	"context"
	"net/http"
	"net/url"
)

// Alias says whether a new link may have a code.
type Alias struct {
	Alias     string `json:"alias"`
	Domain    string `json:"domain"`    // the host that would serve the link
	ShortURL  string `json:"short_url"` // what the link would be called; "" = no link can be
	Available bool   `json:"available"` // nothing is held: whoever creates first has it
	Reason    string `json:"reason"`    // invalid, reserved, refused or taken; "" = available
	Detail    string `json:"detail"`    // the reason for people to read
}

// CheckAlias asks whether a create could have the alias now. An empty domain is the
// server's default domain.
func (c *Client) CheckAlias(ctx context.Context, alias, domain string) (Alias, error) {
	q := url.Values{}
	setTexts(q, map[string]string{"domain": domain})
	var a Alias
	err := c.call(ctx, http.MethodGet, "/api/v1/aliases/"+url.PathEscape(alias), q, nil, &a)
	return a, err
}
