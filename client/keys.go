package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// NewKey asks for an API key. Name and Scopes are needed; zero fields are not sent.
type NewKey struct {
	Name        string     `json:"name"`
	Scopes      []string   `json:"scopes"` // some of links:read, links:write, stats:read, admin
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
	WorkspaceID string     `json:"workspace_id,omitempty"` // one that is new is made
	Plan        string     `json:"plan,omitempty"`         // of the workspace
}

// Key is an API key as the server describes it.
type Key struct {
	ID          string     `json:"id"`
	WorkspaceID string     `json:"workspace_id"`
	Plan        string     `json:"plan"`
	Name        string     `json:"name"`
	Scopes      []string   `json:"scopes"`
	CreatedAt   time.Time  `json:"created_at"`
	CreatedBy   string     `json:"created_by"`
	ExpiresAt   *time.Time `json:"expires_at"`
	LastUsedAt  *time.Time `json:"last_used_at"`
}

// KeySecret is a key and, this once, its secret for WithKey.
type KeySecret struct {
	Key
	Secret string `json:"key"`
}

// KeyPage is one page of keys; NextCursor is empty at the end.
type KeyPage struct {
	Keys       []Key  `json:"keys"`
	NextCursor string `json:"next_cursor"`
}

const keysPath = "/api/v1/keys"

// CreateKey makes an API key. It takes the scope admin, as all calls about keys do.
func (c *Client) CreateKey(ctx context.Context, k NewKey) (KeySecret, error) {
	var made KeySecret
	err := c.call(ctx, http.MethodPost, keysPath, nil, k, &made)
	return made, err
}

// GetKey returns a key without its secret.
func (c *Client) GetKey(ctx context.Context, id string) (Key, error) {
	var k Key
	err := c.call(ctx, http.MethodGet, keyPath(id), nil, nil, &k)
	return k, err
}

// ListKeys returns up to limit keys (1–100; 0 = the server's choice) of a workspace
// ("" = all) after the cursor.
func (c *Client) ListKeys(ctx context.Context, workspace, cursor string, limit int) (KeyPage, error) {
	var p KeyPage
	err := c.call(ctx, http.MethodGet, keysPath, pageQuery(limit, map[string]string{"workspace_id": workspace, "cursor": cursor}), nil, &p)
	return p, err
}

// RotateKey gives a key another secret. The one before goes on for overlap, at most
// a week; whole seconds count.
func (c *Client) RotateKey(ctx context.Context, id string, overlap time.Duration) (KeySecret, error) {
	var made KeySecret
	body := map[string]int64{"overlap": int64(overlap / time.Second)}
	err := c.call(ctx, http.MethodPost, keyPath(id)+"/rotate", nil, body, &made)
	return made, err
}

// RevokeKey ends a key for good, and with it the shares that it made.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, keyPath(id), nil, nil, nil)
}

// RevokeKeyOnly ends a key for good; the shares that it made go on.
func (c *Client) RevokeKeyOnly(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, keyPath(id), url.Values{"keep_shares": {"true"}}, nil, nil)
}

func keyPath(id string) string { return keysPath + "/" + url.PathEscape(id) }
