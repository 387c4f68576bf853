package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
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

// LinkOption says more about a call on one link.
type LinkOption func(*linkCall)

// linkCall is what options add to a request.
type linkCall struct {
	query   url.Values
	headers map[string]string
}

// OnDomain means the link of the code on this host; "" and without it: on the server's
// default domain.
func OnDomain(host string) LinkOption {
	return func(l *linkCall) {
		if host != "" {
			l.query.Set("domain", host)
		}
	}
}

// IfVersion does it only while the link has this version. Otherwise the call changes
// nothing and returns a Problem with status 412.
func IfVersion(version uint64) LinkOption {
	return func(l *linkCall) { l.headers["If-Match"] = `"` + strconv.FormatUint(version, 10) + `"` }
}

// link calls the path of one link.
func (c *transport) link(ctx context.Context, method, code string, options []LinkOption, body, out any) error {
	return c.below(ctx, method, code, "", options, body, out)
}

// below calls a path below that of one link.
func (c *transport) below(ctx context.Context, method, code, path string, options []LinkOption, body, out any) error {
	return c.about(ctx, method, linkPath(code)+path, options, body, out)
}

// about calls a path that is about one link.
func (c *transport) about(ctx context.Context, method, path string, options []LinkOption, body, out any) error {
	l := linkCall{query: url.Values{}, headers: map[string]string{}}
	for _, o := range options {
		o(&l)
	}
	return c.send(ctx, method, path, l.query, l.headers, body, out)
}

// CreateOnce is Create that may be called again with the same key, after a time-out or
// a crash, without making a second link: for a day it returns the first one. The key is
// any text of up to 255 printable ASCII characters; another link under it is a Problem
// with status 422.
func (c *Client) CreateOnce(ctx context.Context, key string, l NewLink) (Link, error) {
	var made Link
	err := c.send(ctx, http.MethodPost, "/api/v1/links", nil, once(key), l, &made)
	return made, err
}

// once is the header of a key: a string of RFC 8941.
func once(key string) map[string]string {
	return map[string]string{"Idempotency-Key": `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`}
}

// Result is what became of one link of CreateMany: a link, or the problem with it.
type Result struct {
	Status  int      `json:"status"` // 201, 202 for a pending one, 200 for an existing one, or the problem's
	Link    *Link    `json:"link"`
	Problem *Problem `json:"problem"`
}

// CreateMany makes up to 1,000 links in one call and returns a result for each, in
// order. The error is for the whole call. It may be called again safely when each
// link has a CustomAlias or Dedupe.
func (c *Client) CreateMany(ctx context.Context, links []NewLink) ([]Result, error) {
	return c.createMany(ctx, nil, links)
}

// CreateManyOnce is CreateMany that may be called again with the same key and the same
// links, for a day, whatever became of the first call and also while it is under way: no
// link is made twice. The key is as for CreateOnce.
func (c *Client) CreateManyOnce(ctx context.Context, key string, links []NewLink) ([]Result, error) {
	return c.createMany(ctx, once(key), links)
}

func (c *transport) createMany(ctx context.Context, headers map[string]string, links []NewLink) ([]Result, error) {
	if links == nil {
		links = []NewLink{}
	}
	var answer struct {
		Results []Result `json:"results"`
	}
	err := c.send(ctx, http.MethodPost, "/api/v1/links/bulk", nil, headers, map[string]any{"links": links}, &answer)
	if err == nil && len(answer.Results) != len(links) {
		err = &Problem{Title: "the response contains " + strconv.Itoa(len(answer.Results)) + " results", Status: http.StatusMultiStatus}
	}
	return answer.Results, err
}
