package statistics

import (
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/httpapi/kernel"
	"curt/internal/httpapi/links"
	"curt/internal/link"
)

// defaultShare is how long a share lasts that names no end: as far as its page shows
// days by itself.
const defaultShare = 30 * 24 * time.Hour

// maxShareBody bounds the body of a share in bytes: one number.
const maxShareBody = 4 << 10

// ShareCreate is the body that asks for a share.
type ShareCreate struct {
	ExpiresIn kernel.Opt[int64] `json:"expires_in" required:"false" minimum:"1" maximum:"31622400" doc:"Seconds from now until the share ends. Default: 2592000, which is 30 days."`
}

// Share is an address at which anybody may read the statistics of one link.
type Share struct {
	URL       string    `json:"url" format:"uri" doc:"The page with the statistics, readable by anyone with this URL. Shown only once."`
	ExpiresAt time.Time `json:"expires_at"`
}

func (st *Statistics) shareOperations(d kernel.Describer) []*kernel.Operation {
	params := []*huma.Param{kernel.CodeParam(), kernel.DomainParam()}
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: links.Path + "/{code}/share", OperationID: "share-stats", Summary: "Share the statistics of a link",
				Description: "Creates a URL that lets anyone read the statistics, and nothing else, until it expires. " +
					"A link may have any number of shares. Revoking the key that created them ends them, unless they are kept; rotation or expiry of the key does not.",
				MaxBodyBytes: maxShareBody, RequestBody: d.Body(ShareCreate{}, "application/json"),
				Parameters: params, Responses: d.Answers(201, "The share.", Share{}, nil, 404, 408, 413, 415, 507),
			},
			Action: auth.ShareStats, Serve: kernel.Reply(http.StatusCreated, links.Keyed(st.Links, st.shareStats)),
			Examples: []kernel.Example{{Name: "week", Summary: "For one week", Body: `{"expires_in":604800}`}},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: links.Path + "/{code}/share", OperationID: "unshare-stats", Summary: "Revoke all shares of a link",
				Description: "All shares of the link end at once and permanently; later shares are not affected. Allowed for callers that may share or update the link.",
				Parameters:  params, Responses: d.Answers(204, "All shares were revoked.", nil, nil, 404, 507),
			},
			Action: auth.EndShare, Serve: kernel.Done(http.StatusNoContent, st.Links.Of(st.unshareStats)),
		},
	}
}

func (st *Statistics) shareStats(c *kernel.Call, k link.Key) (shared Share, err error) {
	var body ShareCreate
	if err := kernel.Decode(c.Body, &body); err != nil {
		return shared, err
	}
	lasts := defaultShare
	if f := body.ExpiresIn; f.Given && !f.Null {
		if most := int64(auth.MaxShare / time.Second); f.Value < 1 || f.Value > most { // before it overflows
			return shared, kernel.BadField("expires_in", fmt.Sprintf("expected 1 to %d seconds", most))
		}
		lasts = time.Duration(f.Value) * time.Second
	}
	owner, err := st.Links.Service.Owner(c.R.Context(), c.Who, c.Action(), k)
	if err != nil {
		return shared, err
	}
	token, ends, err := st.Shares.Issue(c.R.Context(), c.Now, c.Who, k, owner, lasts)
	if err != nil {
		return shared, err
	}
	return Share{URL: st.Links.ShortURL(k) + "/stats?share=" + token, ExpiresAt: ends}, nil
}

func (st *Statistics) unshareStats(c *kernel.Call, k link.Key) error {
	if _, err := st.Links.Service.Owner(c.R.Context(), c.Who, c.Action(), k); err != nil {
		return err
	}
	return st.Shares.End(c.R.Context(), k)
}
