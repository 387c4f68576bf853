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

// Create makes an API key. It takes the scope admin, as all calls about keys do.
func (c *Keys) Create(ctx context.Context, k NewKey) (KeySecret, error) {
	var made KeySecret
	err := c.call(ctx, http.MethodPost, keysPath, nil, k, &made)
	return made, err
}

// Get returns a key without its secret.
func (c *Keys) Get(ctx context.Context, id string) (Key, error) {
	var k Key
	err := c.call(ctx, http.MethodGet, keyPath(id), nil, nil, &k)
	return k, err
}

// List returns up to limit keys (1–100; 0 = the server's choice) of a workspace
// ("" = all) after the cursor.
func (c *Keys) List(ctx context.Context, workspace, cursor string, limit int) (KeyPage, error) {
	var p KeyPage
	err := c.call(ctx, http.MethodGet, keysPath, pageQuery(limit, map[string]string{"workspace_id": workspace, "cursor": cursor}), nil, &p)
	return p, err
}

// Rotate gives a key another secret. The one before goes on for overlap, at most
// a week; whole seconds count.
func (c *Keys) Rotate(ctx context.Context, id string, overlap time.Duration) (KeySecret, error) {
	var made KeySecret
	body := map[string]int64{"overlap": int64(overlap / time.Second)}
	err := c.call(ctx, http.MethodPost, keyPath(id)+"/rotate", nil, body, &made)
	return made, err
}

// Revoke ends a key for good, and with it the shares that it made.
func (c *Keys) Revoke(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, keyPath(id), nil, nil, nil)
}

// RevokeOnly ends a key for good; the shares that it made go on.
func (c *Keys) RevokeOnly(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, keyPath(id), url.Values{"keep_shares": {"true"}}, nil, nil)
}

func keyPath(id string) string { return keysPath + "/" + url.PathEscape(id) }

// Self is what the caller may do.
type Self struct {
	KeyID       string        `json:"key_id"` // empty without a key
	Name        string        `json:"name"`   // of the key; empty for the admin key
	WorkspaceID string        `json:"workspace_id"`
	Plan        string        `json:"plan"`
	Scopes      []string      `json:"scopes"` // admin is all of them
	ExpiresAt   *time.Time    `json:"expires_at"`
	Limits      []CreateLimit `json:"limits"`  // all of them hold; empty = none
	Domains     []string      `json:"domains"` // that a link may be on, the default domain first
}

// CreateLimit bounds how many links are made in a time, and at once.
type CreateLimit struct {
	Links   int   `json:"links"`
	Seconds int64 `json:"seconds"`
}

// Self returns what the key of the client may do, or a caller without one.
func (c *Client) Self(ctx context.Context) (Self, error) {
	var s Self
	err := c.call(ctx, http.MethodGet, keysPath+"/self", nil, nil, &s)
	return s, err
}
