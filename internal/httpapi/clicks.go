package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/clicks"
	"curt/internal/link"
)

// Click is one click as the API shows it. What is unknown is null.
type Click struct {
	Time         string  `json:"time" format:"date-time" doc:"With three digits of milliseconds."`
	Outcome      string  `json:"outcome" enum:"redirected,fallback,refused" doc:"Only redirected counts as a click."`
	Preview      bool    `json:"preview" doc:"A HEAD request or a prefetch, which never counts."`
	Bot          bool    `json:"bot"`
	BotReason    *string `json:"bot_reason" enum:"named,listed,no_browser" doc:"Why it counts as a bot's."`
	BotName      *string `json:"bot_name" doc:"How the program calls itself."`
	Country      *string `json:"country" doc:"ISO 3166-1 alpha-2."`
	City         *string `json:"city"`
	Network      *string `json:"network" doc:"The organisation behind the visitor's network."`
	Device       string  `json:"device"`
	Browser      string  `json:"browser"`
	OS           string  `json:"os"`
	Language     *string `json:"language"`
	ReferrerHost string  `json:"referrer_host"`
	Trigger      string  `json:"trigger" enum:"link,qr,warning"`
	UTMSource    *string `json:"utm_source"`
	UTMMedium    *string `json:"utm_medium"`
	UTMCampaign  *string `json:"utm_campaign"`
	UTMTerm      *string `json:"utm_term"`
	UTMContent   *string `json:"utm_content"`
	Visitor      *string `json:"visitor" doc:"The same for one visitor of this link on one day (UTC), and for nobody else."`
}

// clickTime is how the time of a click is written, in JSON and in files.
const clickTime = "2006-01-02T15:04:05.000Z07:00"

// ClickList is a page of clicks.
type ClickList struct {
	Clicks     []Click `json:"clicks" nullable:"false"`
	NextCursor string  `json:"next_cursor,omitzero" doc:"Continues the walk, also after a page that is short or empty; absent at its end."`
	Damaged    bool    `json:"damaged,omitzero" doc:"Part of the click log that this page went through cannot be read: clicks may be missing. Absent otherwise. Statistics are counted apart from the log."`
}

func (a *api) clicksOperation(d describer) *operation {
	answers := d.answers(200, "A page of clicks.", ClickList{}, map[string]*huma.Param{
		nextCursorHeader:      header("With CSV: the next_cursor."),
		damagedHeader:         header("With CSV: true where JSON says damaged."),
		"Content-Disposition": header("With CSV: the name of the file."),
	}, 404)
	answers["200"].Content[mediaCSV] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	return &operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: linksPath + "/{code}/clicks", OperationID: "link-clicks", Summary: "Show the clicks of a link, newest first",
			Description: "Clicks are kept as long as the operator chose, 30 days by default. They are collected every 50 ms: clicks of " +
				"one such moment may stand in another order. The work of one request is bounded: " +
				"a page may be short or empty and still have a next_cursor.",
			Parameters: append([]*huma.Param{
				codeParam(), domainParam(),
				queryParam("from", "Only clicks from this date on.", momentSchema()),
				queryParam("to", "Only clicks before this date.", momentSchema()),
				queryParam("limit", "The most clicks of a page.", rangeSchema(1, 1000, 100)),
				queryParam("cursor", "Where to go on: the next_cursor of the page before, with the same link, from and to.", &huma.Schema{Type: huma.TypeString}),
				queryParam("format", "Instead of an Accept header.", &huma.Schema{Type: huma.TypeString, Enum: []any{"json", "csv"}}),
			}, filterParams("")...),
			Responses: answers,
		},
		action: auth.ReadStats, serve: (*call).linkClicks,
	}
}

func (c *call) linkClicks() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	q, err := c.clicksQuestion(k)
	if err != nil {
		return err
	}
	format, err := c.choice("format")
	if err != nil {
		return err
	}
	if err := c.api.links.Exists(c.r.Context(), c.who, k); err != nil {
		return err
	}
	page, err := c.api.clicks.Page(c.r.Context(), q)
	if err != nil {
		return fmt.Errorf("%w: clicks of %s: %w", analytics.ErrUnavailable, k, err)
	}
	list := ClickList{Clicks: make([]Click, len(page.Clicks)), Damaged: page.Damaged}
	for i := range page.Clicks {
		list.Clicks[i] = c.api.shownClick(k, &page.Clicks[i])
	}
	if page.More {
		list.NextCursor = c.api.cursors.sealClicks(q, page.Next)
	}
	if format == "csv" || format == "" && prefersCSV(c.r.Header.Values("Accept")) {
		return c.csv(k, &list)
	}
	return c.json(http.StatusOK, list)
}

func (c *call) clicksQuestion(k link.Key) (q clicks.HistoryQuery, err error) {
	q.Key = k
	if q.Limit, err = c.integer("limit"); err != nil {
		return q, err
	}
	if q.From, q.To, err = c.between(time.Time{}); err != nil {
		return q, err
	}
	if !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To) {
		return q, badField("from", "must lie before to")
	}
	f, err := c.statsFilter()
	if err != nil {
		return q, err
	}
	if f.Any() {
		q.Keep = f.Takes
	}
	if sealed := c.query.Get("cursor"); sealed != "" {
		var ok bool
		if q.Before, ok = c.api.cursors.openClicks(q, sealed); !ok {
			return q, badField("cursor", "is not a cursor of these clicks")
		}
	}
	return q, nil
}

func (a *api) shownClick(k link.Key, c *clicks.Click) Click {
	reason, utm := string(c.BotReason), c.UTM
	for i := range utm { // a store may have them from a release that kept more
		utm[i] = clicks.Plain(utm[i])
	}
	name := clicks.Plain(c.BotName)
	return Click{
		Time: c.Time.Format(clickTime), Outcome: c.Outcome.String(), Preview: c.Preview, Bot: c.Bot, BotReason: text(&reason), BotName: text(&name),
		Country: text(&c.Country), City: text(&c.City), Network: text(&c.Network), Device: c.Device, Browser: c.Browser, OS: c.OS,
		Language: text(&c.Language), ReferrerHost: c.ReferrerHost, Trigger: c.Trigger,
		UTMSource: text(&utm[0]), UTMMedium: text(&utm[1]), UTMCampaign: text(&utm[2]), UTMTerm: text(&utm[3]), UTMContent: text(&utm[4]),
		Visitor: a.pseudonym(k, c.Visitor),
	}
}

// pseudonym returns what a visitor is called on one link. The tag itself is the
// same on all links of a day: whoever saw it could follow a visitor from one
// owner's links to another's.
func (a *api) pseudonym(k link.Key, tag uint64) *string {
	if tag == 0 {
		return nil
	}
	h := hmac.New(sha256.New, a.cursors.key)
	_, _ = fmt.Fprintf(h, "visitor\x00%s\x00%s\x00%d", k.Domain, k.Code, tag) // a hash takes everything
	name := hex.EncodeToString(h.Sum(nil)[:8])
	return &name
}

// prefersCSV reads Accept: CSV is sent to whoever names it and does not like JSON
// better.
func prefersCSV(accept []string) bool {
	var csv, json float64
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		media, parameters, _ := strings.Cut(part, ";")
		weight := 1.0
		for parameter := range strings.SplitSeq(parameters, ";") {
			if q, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(parameter)), "q="); ok {
				weight, _ = strconv.ParseFloat(q, 64) // nonsense is 0: not wanted
			}
		}
		switch strings.ToLower(strings.TrimSpace(media)) {
		case mediaCSV:
			csv = max(csv, weight)
		case "application/json":
			json = max(json, weight)
		}
	}
	return csv > 0 && csv >= json
}
