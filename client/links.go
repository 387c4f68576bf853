package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// Page is one page of a list; NextCursor is empty at its end.
type Page struct {
	Links      []Link `json:"links"`
	NextCursor string `json:"next_cursor"`
}

// Create makes a link.
func (c *Client) Create(ctx context.Context, l NewLink) (Link, error) {
	var made Link
	err := c.call(ctx, http.MethodPost, "/api/v1/links", nil, l, &made)
	return made, err
}

// Get returns the link of the code.
func (c *Client) Get(ctx context.Context, code string, options ...LinkOption) (Link, error) {
	var l Link
	err := c.link(ctx, http.MethodGet, code, options, nil, &l)
	return l, err
}

// ListQuery chooses links and their order; zero fields leave it to the server.
type ListQuery struct {
	Cursor string // NextCursor of the page before, with the same other fields
	Limit  int    // 1–100; a page may have fewer links before the end
	Text   string // words, each found whole or as a beginning
	Tag    string
	Status string // active or disabled
	State  string // live, not_yet, expired, exhausted, disabled, warning, blocked or legal
	Domain string
	Sort   string // -created_at, created_at or -clicks
}

// Find returns a page of the links that a query chooses.
func (c *Client) Find(ctx context.Context, query ListQuery) (Page, error) {
	q := url.Values{}
	if query.Limit > 0 {
		q.Set("limit", strconv.Itoa(query.Limit))
	}
	for name, v := range map[string]string{
		"cursor": query.Cursor, "q": query.Text, "tag": query.Tag, "status": query.Status, "state": query.State,
		"domain": query.Domain, "sort": query.Sort,
	} {
		if v != "" {
			q.Set(name, v)
		}
	}
	var p Page
	err := c.call(ctx, http.MethodGet, "/api/v1/links", q, nil, &p)
	return p, err
}

// Update changes the fields named in patch, by their JSON names; nil clears one.
func (c *Client) Update(ctx context.Context, code string, patch map[string]any, options ...LinkOption) (Link, error) {
	var l Link
	err := c.link(ctx, http.MethodPatch, code, options, patch, &l)
	return l, err
}

// Delete removes a link for good; its code is never given away again.
func (c *Client) Delete(ctx context.Context, code string, options ...LinkOption) error {
	return c.link(ctx, http.MethodDelete, code, options, nil, nil)
}

// List returns up to limit links (1–100; 0 = the server's choice) after the cursor.
func (c *Client) List(ctx context.Context, cursor string, limit int) (Page, error) {
	return c.Find(ctx, ListQuery{Cursor: cursor, Limit: limit})
}

func linkPath(code string) string { return "/api/v1/links/" + url.PathEscape(code) }
