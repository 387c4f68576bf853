package client

import (
	"context"
	"net/http"
	"strconv"
	"strings"
)

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
	Status  int      `json:"status"` // 201, 200 for an existing link, or the problem's
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

func (c *Client) createMany(ctx context.Context, headers map[string]string, links []NewLink) ([]Result, error) {
	if links == nil {
		links = []NewLink{}
	}
	var answer struct {
		Results []Result `json:"results"`
	}
	err := c.send(ctx, http.MethodPost, "/api/v1/links/bulk", nil, headers, map[string]any{"links": links}, &answer)
	if err == nil && len(answer.Results) != len(links) {
		err = &Problem{Title: "the answer holds " + strconv.Itoa(len(answer.Results)) + " results", Status: http.StatusMultiStatus}
	}
	return answer.Results, err
}
