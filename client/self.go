package client

import (
	"context"
	"net/http"
	"time"
)

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
