package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Alias says whether a new link may have a code.
type Alias struct {
	Alias         string     `json:"alias"`
	Domain        string     `json:"domain"`         // the host that would serve the link
	ShortURL      string     `json:"short_url"`      // what the link would be called; "" = no link can be
	Available     bool       `json:"available"`      // nothing is held by asking: whoever creates first has it
	State         string     `json:"state"`          // free, taken, reserved, refused or invalid
	Reason        string     `json:"reason"`         // invalid, reserved, refused, taken or held; "" = available
	Detail        string     `json:"detail"`         // the reason for people to read
	ReservedUntil *time.Time `json:"reserved_until"` // nil = there is no reservation
	Suggestions   []string   `json:"suggestions"`    // up to three others that were free
}

// CheckAlias asks whether a create could have the alias now. An empty domain is the
// server's default domain.
func (c *Client) CheckAlias(ctx context.Context, alias, domain string) (Alias, error) {
	var a Alias
	err := c.alias(ctx, http.MethodGet, alias, "", domain, &a)
	return a, err
}

// Reservation is an alias that the workspace of the key holds.
type Reservation struct {
	Alias         string    `json:"alias"`
	Domain        string    `json:"domain"`    // the host that would serve the link
	ShortURL      string    `json:"short_url"` // what the link would be called
	ReservedUntil time.Time `json:"reserved_until"`
	ExpiresIn     int64     `json:"expires_in"` // seconds until then
}

// Reserve holds an alias for five minutes, in which only the workspace of the key can create a link with
// it. Where it holds the alias already the reservation is returned as it is. A [Problem] with Until says that
// another workspace holds it. An empty domain is the server's default domain.
func (c *Aliases) Reserve(ctx context.Context, alias, domain string) (Reservation, error) {
	var r Reservation
	err := c.alias(ctx, http.MethodPost, alias, "/reservations", domain, &r)
	return r, err
}

// Release ends a reservation before its time.
func (c *Aliases) Release(ctx context.Context, alias, domain string) error {
	return c.alias(ctx, http.MethodDelete, alias, "/reservations", domain, nil)
}

func (c *transport) alias(ctx context.Context, method, alias, below, domain string, out any) error {
	q := url.Values{}
	setTexts(q, map[string]string{"domain": domain})
	return c.call(ctx, method, "/api/v1/aliases/"+url.PathEscape(alias)+below, q, nil, out)
}
