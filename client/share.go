package client

import (
	"context"
	"net/http"
	"time"
)

// Share is an address at which anybody may read the statistics of one link.
type Share struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Share makes an address at which anybody may read the statistics of a link, for a
// while: at most 366 days, 0 = the server's choice; whole seconds count. The server
// shows it this once.
func (c *Client) Share(ctx context.Context, code string, lasts time.Duration, options ...LinkOption) (Share, error) {
	body := map[string]int64{}
	if lasts != 0 {
		body["expires_in"] = int64(lasts / time.Second)
	}
	var made Share
	err := c.below(ctx, http.MethodPost, code, "/share", options, body, &made)
	return made, err
}

// EndShares ends every share of a link, for good.
func (c *Client) EndShares(ctx context.Context, code string, options ...LinkOption) error {
	return c.below(ctx, http.MethodDelete, code, "/share", options, nil, nil)
}
