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
	"strconv"
	"strings"
	"time"
)

// Click is one click of a link. What is unknown is empty.
type Click struct {
	Time         time.Time `json:"time"`
	Outcome      string    `json:"outcome"` // redirected, fallback or refused; only redirected counts
	Preview      bool      `json:"preview"` // HEAD or prefetch, which never counts
	Bot          bool      `json:"bot"`
	BotReason    string    `json:"bot_reason"`
	BotName      string    `json:"bot_name"`
	Country      string    `json:"country"`
	City         string    `json:"city"`
	Network      string    `json:"network"`
	Device       string    `json:"device"`
	Browser      string    `json:"browser"`
	OS           string    `json:"os"`
	Language     string    `json:"language"`
	ReferrerHost string    `json:"referrer_host"`
	Trigger      string    `json:"trigger"`
	UTMSource    string    `json:"utm_source"`
	UTMMedium    string    `json:"utm_medium"`
	UTMCampaign  string    `json:"utm_campaign"`
	UTMTerm      string    `json:"utm_term"`
	UTMContent   string    `json:"utm_content"`
	Visitor      string    `json:"visitor"` // the same for one visitor of this link on one day (UTC)
}

// ClickPage is a page of clicks, newest first. It may be short, even empty, while
// NextCursor says that there may be more; NextCursor is empty at the end.
type ClickPage struct {
	Clicks     []Click `json:"clicks"`
	Damaged    bool    `json:"damaged"` // part of the server's click log cannot be read: clicks may be missing
	NextCursor string  `json:"next_cursor"`
}

// ClicksQuery chooses clicks; zero fields leave it to the server.
type ClicksQuery struct {
	Domain   string    // the link's host; "" = the server's default domain
	From, To time.Time // From included, To not
	Limit    int       // 1 to 1,000
	Cursor   string    // the NextCursor of the page before, with the same Domain, From and To
}

// Clicks returns a page of a link's clicks.
func (c *Client) Clicks(ctx context.Context, code string, query ClicksQuery) (ClickPage, error) {
	q := url.Values{}
	setTimes(q, query.From, query.To)
	setTexts(q, map[string]string{"domain": query.Domain, "cursor": query.Cursor})
	if query.Limit > 0 {
		q.Set("limit", strconv.Itoa(query.Limit))
	}
	var p ClickPage
	err := c.call(ctx, http.MethodGet, linkPath(code)+"/clicks", q, nil, &p)
	return p, err
}

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

func (c *transport) watch(ctx context.Context, path string, q url.Values, told func(uint64)) error {
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
			return fmt.Errorf("watch %s: not a response of a curt server: %w", req.URL.Redacted(), err)
		}
		told(event.Clicks)
	}
	if err := errors.Join(lines.Err(), ctx.Err()); err != nil {
		return fmt.Errorf("watch %s: %w", req.URL.Redacted(), withoutURL(err))
	}
	return nil
}
