package statistics

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
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
	"curt/internal/clicks/history"
	"curt/internal/exchange"
	"curt/internal/httpapi/kernel"
	"curt/internal/httpapi/links"
	"curt/internal/link"
)

// Click is one click as the API shows it. What is unknown is null.
type Click struct {
	Time         string  `json:"time" format:"date-time" doc:"In milliseconds, always with three digits."`
	Outcome      string  `json:"outcome" enum:"redirected,fallback,refused" doc:"Only redirected counts as a click."`
	Preview      bool    `json:"preview" doc:"A HEAD request or a prefetch; never counted."`
	Bot          bool    `json:"bot"`
	BotReason    *string `json:"bot_reason" enum:"named,listed,no_browser" doc:"Why the click counts as a bot."`
	BotName      *string `json:"bot_name" doc:"The name of the bot."`
	Country      *string `json:"country" doc:"ISO 3166-1 alpha-2."`
	City         *string `json:"city"`
	Network      *string `json:"network" doc:"The organisation that operates the visitor's network."`
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
	Visitor      *string `json:"visitor" doc:"Identifies a visitor of this link within one day (UTC)."`
}

// clickTime is how the time of a click is written, in JSON and in files.
const clickTime = "2006-01-02T15:04:05.000Z07:00"

// ClickList is a page of clicks.
type ClickList struct {
	Clicks     []Click `json:"clicks" nullable:"false"`
	NextCursor string  `json:"next_cursor,omitzero" doc:"Cursor of the next page, present even if this page is short or empty; absent on the last page."`
	Damaged    bool    `json:"damaged,omitzero" doc:"Part of the click log for this page is unreadable, so clicks may be missing. Absent otherwise. Statistics are not affected."`
}

func (st *Statistics) clicksOperation(d kernel.Describer) *kernel.Operation {
	answers := d.Answers(200, "A page of clicks.", ClickList{}, map[string]*huma.Param{
		nextCursorHeader:      kernel.Header("CSV only: the next_cursor."),
		damagedHeader:         kernel.Header("CSV only: true where JSON has damaged."),
		"Content-Disposition": kernel.Header("CSV only: the file name."),
	}, 404)
	answers["200"].Content[kernel.MediaCSV] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: links.Path + "/{code}/clicks", OperationID: "link-clicks", Summary: "List the clicks of a link, newest first",
			Description: "Raw clicks are kept for the operator's retention period, 30 days by default. They are collected every 50 ms; clicks " +
				"within one such interval may be out of order. The work of one request is bounded: " +
				"a page may be short or empty and still have a next_cursor.",
			Parameters: append([]*huma.Param{
				kernel.CodeParam(), kernel.DomainParam(),
				kernel.QueryParam("from", "Only clicks at or after this date.", momentSchema()),
				kernel.QueryParam("to", "Only clicks before this date.", momentSchema()),
				kernel.QueryParam("limit", "Maximum number of clicks per page.", kernel.RangeSchema(1, 1000, 100)),
				kernel.QueryParam("cursor", "The next_cursor of the previous page; use it with the same link, from and to.", &huma.Schema{Type: huma.TypeString}),
				kernel.QueryParam("format", "Overrides the Accept header.", &huma.Schema{Type: huma.TypeString, Enum: []any{"json", "csv"}}),
			}, filterParams("")...),
			Responses: answers,
		},
		Action: auth.ReadStats, Serve: st.Links.Of(st.linkClicks),
	}
}

func (st *Statistics) linkClicks(c *kernel.Call, k link.Key) error {
	q, err := st.clicksQuestion(c, k)
	if err != nil {
		return err
	}
	format, err := c.Choice("format")
	if err != nil {
		return err
	}
	if err := st.Links.Service.Exists(c.R.Context(), c.Who, k); err != nil {
		return err
	}
	page, err := st.History.Page(c.R.Context(), q)
	if err != nil {
		return fmt.Errorf("%w: clicks of %s: %w", analytics.ErrUnavailable, k, err)
	}
	list := ClickList{Clicks: make([]Click, len(page.Clicks)), Damaged: page.Damaged}
	for i := range page.Clicks {
		list.Clicks[i] = st.shownClick(k, &page.Clicks[i])
	}
	if page.More {
		list.NextCursor = sealBookmark(st.Key, q, page.Next)
	}
	if format == "csv" || format == "" && prefersCSV(c.R.Header.Values("Accept")) {
		return writeCSV(c, k, &list)
	}
	return c.JSON(http.StatusOK, list)
}

func (st *Statistics) clicksQuestion(c *kernel.Call, k link.Key) (q history.Query, err error) {
	q.Key = k
	if q.Limit, err = c.Integer("limit"); err != nil {
		return q, err
	}
	if q.From, q.To, err = between(c, time.Time{}); err != nil {
		return q, err
	}
	if !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To) {
		return q, kernel.BadField("from", "must be before to")
	}
	f, err := readFilter(c)
	if err != nil {
		return q, err
	}
	if f.Any() {
		q.Filter = f.Takes
	}
	if sealed := c.Query.Get("cursor"); sealed != "" {
		var ok bool
		if q.Before, ok = openBookmark(st.Key, q, sealed); !ok {
			return q, kernel.BadCursor()
		}
	}
	return q, nil
}

func (st *Statistics) shownClick(k link.Key, c *clicks.Click) Click {
	reason, utm := string(c.BotReason), c.UTM
	for i := range utm { // a store may have them from a release that kept more
		utm[i] = clicks.Plain(utm[i])
	}
	name := clicks.Plain(c.BotName)
	return Click{
		Time: c.Time.Format(clickTime), Outcome: c.Outcome.String(), Preview: c.Preview, Bot: c.Bot, BotReason: kernel.Optional(&reason), BotName: kernel.Optional(&name),
		Country: kernel.Optional(&c.Country), City: kernel.Optional(&c.City), Network: kernel.Optional(&c.Network), Device: c.Device, Browser: c.Browser, OS: c.OS,
		Language: kernel.Optional(&c.Language), ReferrerHost: c.ReferrerHost, Trigger: c.Trigger,
		UTMSource: kernel.Optional(&utm[0]), UTMMedium: kernel.Optional(&utm[1]), UTMCampaign: kernel.Optional(&utm[2]), UTMTerm: kernel.Optional(&utm[3]), UTMContent: kernel.Optional(&utm[4]),
		Visitor: st.pseudonym(k, c.Visitor),
	}
}

// pseudonym returns what a visitor is called on one link. The tag itself is the
// same on all links of a day: whoever saw it could follow a visitor from one
// owner's links to another's.
func (st *Statistics) pseudonym(k link.Key, tag uint64) *string {
	if tag == 0 {
		return nil
	}
	h := hmac.New(sha256.New, st.Key)
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
		case kernel.MediaCSV:
			csv = max(csv, weight)
		case "application/json":
			json = max(json, weight)
		}
	}
	return csv > 0 && csv >= json
}

const (
	nextCursorHeader = "Curt-Next-Cursor"
	damagedHeader    = "Curt-Clicks-Damaged"
)

// clickColumns are the names of a CSV file's columns: those of the JSON.
func clickColumns() []string {
	return []string{
		"time", "outcome", "preview", "bot", "bot_reason", "bot_name", "country", "city", "network", "device", "browser", "os",
		"language", "referrer_host", "trigger", "utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "visitor",
	}
}

// cells returns a click by columns.
func (k *Click) cells() []string {
	known := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return []string{
		k.Time, k.Outcome, strconv.FormatBool(k.Preview), strconv.FormatBool(k.Bot),
		known(k.BotReason), known(k.BotName), known(k.Country), known(k.City), known(k.Network), k.Device, k.Browser, k.OS,
		known(k.Language), k.ReferrerHost, k.Trigger, known(k.UTMSource), known(k.UTMMedium), known(k.UTMCampaign),
		known(k.UTMTerm), known(k.UTMContent), known(k.Visitor),
	}
}

// writeCSV answers with a page as a file (RFC 4180, with a line of names).
func writeCSV(c *kernel.Call, k link.Key, list *ClickList) error {
	h := c.W.Header()
	h["Content-Type"] = []string{kernel.MediaCSV + "; charset=utf-8; header=present"}
	h["Content-Disposition"] = []string{`attachment; filename="clicks-` + string(k.Code) + `.csv"`} // a code has no character that needs care
	if list.NextCursor != "" {
		h[nextCursorHeader] = []string{list.NextCursor}
	}
	if list.Damaged {
		h[damagedHeader] = []string{"true"}
	}
	kernel.CommonHeaders(h)
	c.W.WriteHeader(http.StatusOK)
	w := csv.NewWriter(c.W)
	w.UseCRLF = true
	_ = w.Write(clickColumns())
	for i := range list.Clicks {
		row := list.Clicks[i].cells()
		for j := range row {
			row[j] = exchange.Harmless(row[j])
		}
		_ = w.Write(row) // an error is kept until Flush: the client is gone, and nobody is left to tell
	}
	w.Flush()
	return nil
}

// A cursor of clicks is the MAC and the bookmark: segment, offset, record.
const (
	macSize      = 16
	bookmarkSize = 8 + 8 + 4
)

// sealBookmark returns the cursor that continues a walk over a link's clicks.
func sealBookmark(key []byte, q history.Query, at history.Cursor) string {
	var b [bookmarkSize]byte
	binary.BigEndian.PutUint64(b[:], at.Position.Segment)
	binary.BigEndian.PutUint64(b[8:], uint64(at.Position.Offset))
	binary.BigEndian.PutUint32(b[16:], at.Record)
	return base64.RawURLEncoding.EncodeToString(append(bookmarkMAC(key, q, b[:]), b[:]...))
}

// openBookmark returns the bookmark of a cursor that sealBookmark returned for the same
// link, from and to.
func openBookmark(key []byte, q history.Query, sealed string) (at history.Cursor, ok bool) {
	if len(sealed) != base64.RawURLEncoding.EncodedLen(macSize+bookmarkSize) {
		return at, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || !hmac.Equal(raw[:macSize], bookmarkMAC(key, q, raw[macSize:])) {
		return at, false
	}
	b := raw[macSize:]
	at.Position.Segment, at.Position.Offset = binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:]))
	at.Record = binary.BigEndian.Uint32(b[16:])
	return at, true
}

// bookmarkMAC binds a bookmark to the question. Neither domain nor code has a NUL.
func bookmarkMAC(key []byte, q history.Query, bookmark []byte) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(h, "clicks\x00%s\x00%s\x00%d\x00%d\x00%s", q.Key.Domain, q.Key.Code, q.From.UnixMilli(), q.To.UnixMilli(), bookmark)
	return h.Sum(nil)[:macSize]
}
