package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// WatchClicks calls told with what the clicks of a link come to, at once and whenever the
// count moved, about a second after the click. domain is the link's host; "" = the server's
// default domain. It returns nil when the server ended the stream, as it does before it
// stops, and an error when ctx or the connection ended or the server refused. A timeout of
// the http.Client ends it, too.
func (c *Client) WatchClicks(ctx context.Context, code, domain string, told func(clicks uint64)) error {
	q := url.Values{}
	setTexts(q, map[string]string{"domain": domain})
	return c.watch(ctx, linkPath(code)+"/clicks/live", q, told)
}

// WatchWorkspace is WatchClicks of all links of a workspace; "" = that of the key.
func (c *Client) WatchWorkspace(ctx context.Context, workspace string, told func(clicks uint64)) error {
	q := url.Values{}
	setTexts(q, map[string]string{"workspace_id": workspace})
	return c.watch(ctx, "/api/v1/clicks/live", q, told)
}

func (c *Client) watch(ctx context.Context, path string, q url.Values, told func(uint64)) error {
	req, err := c.request(ctx, http.MethodGet, path, q, map[string]string{"Accept": "text/event-stream, application/problem+json"}, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("watch %s: %w: %w", req.URL.Redacted(), ErrNoAnswer, withoutURL(err))
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode >= http.StatusMultipleChoices {
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return fmt.Errorf("watch %s: %w: read it: %w", req.URL.Redacted(), ErrNoAnswer, err)
		}
		return problem(resp, text)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		var event struct {
			Clicks uint64 `json:"clicks"`
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return fmt.Errorf("watch %s: the answer is not what a curt server sends: %w", req.URL.Redacted(), err)
		}
		told(event.Clicks)
	}
	if err := errors.Join(lines.Err(), ctx.Err()); err != nil {
		return fmt.Errorf("watch %s: %w", req.URL.Redacted(), withoutURL(err))
	}
	return nil
}
