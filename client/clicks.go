package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
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
