package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
)

// defaultShare is how long a share lasts that names no end: as far as its page shows
// days by itself.
const defaultShare = 30 * 24 * time.Hour

// ShareCreate is the body that asks for a share.
type ShareCreate struct {
	ExpiresIn opt[int64] `json:"expires_in" required:"false" minimum:"1" maximum:"31622400" doc:"Seconds from now until the share ends. Default: 2592000, which is 30 days."`
}

// Share is an address at which anybody may read the statistics of one link.
type Share struct {
	URL       string    `json:"url" format:"uri" doc:"A page for people. Whoever has the address may read it: it is shown this once."`
	ExpiresAt time.Time `json:"expires_at"`
}

func (a *api) shareOperations(d describer) []*operation {
	params := []*huma.Param{codeParam(), domainParam()}
	return []*operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: linksPath + "/{code}/share", OperationID: "share-stats", Summary: "Share the statistics of a link",
				Description: "Makes an address at which anybody may read the statistics until it ends, and nothing else. " +
					"A link may have any number of them. They end when the key that made them is revoked, unless that is told to keep them, and go on when it is rotated or expires.",
				MaxBodyBytes: maxKeyBody, RequestBody: d.body(ShareCreate{}, "application/json"),
				Parameters: params, Responses: d.answers(201, "The address.", Share{}, nil, 404, 408, 413, 415, 507),
			},
			action: auth.ShareStats, serve: (*call).shareStats,
			examples: []example{{name: "week", summary: "For a week", body: `{"expires_in":604800}`}},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: linksPath + "/{code}/share", OperationID: "unshare-stats", Summary: "End every share of a link",
				Description: "All addresses that were made for the link stop at once, and for good; later ones are not theirs. Whoever may make one may end them, and whoever may change the link.",
				Parameters:  params, Responses: d.answers(204, "Nothing of the link is shared.", nil, nil, 404, 507),
			},
			action: auth.EndShare, serve: (*call).unshareStats,
		},
	}
}

func (c *call) shareStats() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	var body ShareCreate
	if err := decode(c.body, &body); err != nil {
		return err
	}
	lasts := defaultShare
	if f := body.ExpiresIn; f.Given && !f.Null {
		if most := int64(auth.MaxShare / time.Second); f.Value < 1 || f.Value > most { // before it overflows
			return badField("expires_in", fmt.Sprintf("want 1 to %d seconds", most))
		}
		lasts = time.Duration(f.Value) * time.Second
	}
	owner, err := c.api.links.Owner(c.r.Context(), c.who, c.op.action, k)
	if err != nil {
		return err
	}
	token, ends, err := c.api.shares.Make(c.r.Context(), c.now, c.who, k, owner, lasts)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, Share{URL: c.api.sites.shortURL(k) + "/stats?share=" + token, ExpiresAt: ends})
}

func (c *call) unshareStats() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	if _, err := c.api.links.Owner(c.r.Context(), c.who, c.op.action, k); err != nil {
		return err
	}
	if err := c.api.shares.End(c.r.Context(), k); err != nil {
		return err
	}
	commonHeaders(c.w.Header())
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
