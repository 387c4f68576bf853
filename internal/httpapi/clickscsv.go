package httpapi

import (
	"encoding/csv"
	"net/http"
	"strconv"

	"curt/internal/exchange"
	"curt/internal/link"
)

const (
	mediaCSV         = "text/csv"
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

// csv answers with a page as a file (RFC 4180, with a line of names).
func (c *call) csv(k link.Key, list *ClickList) error {
	h := c.w.Header()
	h["Content-Type"] = []string{mediaCSV + "; charset=utf-8; header=present"}
	h["Content-Disposition"] = []string{`attachment; filename="clicks-` + string(k.Code) + `.csv"`} // a code has no character that needs care
	if list.NextCursor != "" {
		h[nextCursorHeader] = []string{list.NextCursor}
	}
	if list.Damaged {
		h[damagedHeader] = []string{"true"}
	}
	commonHeaders(h)
	c.w.WriteHeader(http.StatusOK)
	w := csv.NewWriter(c.w)
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
