package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/clicks"
	"curt/internal/link"
)

// topRows is how many values of a dimension are shown.
const topRows = 10

// statistics is the page of "/{code}/stats".
type statistics struct {
	shell
	Short    string
	Link     *facts // nil = who asks may read the statistics only
	Totals   []total
	Last     *time.Time
	Ranges   []choice
	Chart    chart
	Tables   []breakdown
	Complete *time.Time
	Leave    string // where the form goes that takes the entry back; "" = a share
}

// facts are what is shown of the link itself.
type facts struct {
	Name, State string
	Destination *destination
	Created     time.Time
	Expires     *time.Time
}

type total struct{ Name, Count string }

// choice is a part of time to look at.
type choice struct {
	Name, Href string
	Current    bool

	value string
	step  analytics.Step
	n     int
	word  string // what one step is
}

// breakdown is the most clicked values of a dimension.
type breakdown struct {
	Name string
	Rows []row
}

type row struct {
	Value, Clicks string
	Percent       string // of the most clicked one
}

// choices are the parts of time, the one for who chooses nothing first.
func choices() []choice {
	return []choice{
		{Name: "30 days", value: "30d", step: analytics.Day, n: 30, word: "day"},
		{Name: "48 hours", value: "48h", step: analytics.Hour, n: 48, word: "hour"},
		{Name: "A year", value: "365d", step: analytics.Day, n: 365, word: "day"},
	}
}

// dimensionTitles names the dimensions for people.
func dimensionTitles() map[clicks.Dimension]string {
	return map[clicks.Dimension]string{
		clicks.Country: "Countries", clicks.City: "Cities", clicks.Network: "Networks", clicks.ReferrerHost: "Referrers",
		clicks.Device: "Devices", clicks.Browser: "Browsers", clicks.OS: "Operating systems", clicks.Language: "Languages",
		clicks.Trigger: "Link, QR code or warning", clicks.UTMSource: "Campaign sources", clicks.UTMMedium: "Campaign media",
		clicks.UTMCampaign: "Campaigns", clicks.UTMTerm: "Campaign terms", clicks.UTMContent: "Campaign contents",
	}
}

// stats answers "/{code}/stats".
func (h *Handler) stats(w http.ResponseWriter, r *http.Request, k link.Key) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		h.enter(w, r, k)
		return
	default:
		h.methods(w, r)
		return
	}
	w.Header()["X-Robots-Tag"] = []string{"noindex"}
	share, chosen, ok := question(r.URL.RawQuery)
	if !ok {
		h.say(w, r, http.StatusBadRequest, "The request is invalid", "The query may have share and range, each once; range is 48h, 30d or 365d.", "")
		return
	}
	if share != "" { // the address is the secret
		w.Header()["Referrer-Policy"] = []string{"no-referrer"}
	}
	who, err := h.viewer(r, k, share)
	if err != nil {
		h.refuse(w, r, k, share, err)
		return
	}
	l, known, err := h.find(r.Context(), who, k)
	if err != nil {
		h.refuse(w, r, k, share, err)
		return
	}
	page := statistics{shell: h.Pages.shell("Statistics of " + string(k.Code)), Short: h.ShortURL(k), Ranges: ranges(share, chosen)}
	page.Wide = true
	if known {
		page.Link = h.facts(&l)
	}
	if share == "" {
		page.Leave = r.URL.EscapedPath()
	}
	if err := h.count(r.Context(), &page, k, chosen); err != nil {
		h.refuse(w, r, k, share, err)
		return
	}
	h.write(w, r, http.StatusOK, "stats", page)
}

// question reads a query strictly.
func question(raw string) (share string, chosen choice, ok bool) {
	query, err := url.ParseQuery(raw)
	chosen = choices()[0]
	if err != nil {
		return "", chosen, false
	}
	for name, values := range query {
		switch {
		case len(values) > 1, values[0] == "", name != "share" && name != "range":
			return "", chosen, false
		case name == "share":
			share = values[0]
			continue
		}
		ok := false
		for _, c := range choices() {
			if c.value == values[0] {
				chosen, ok = c, true
			}
		}
		if !ok {
			return "", chosen, false
		}
	}
	return share, chosen, true
}

// ranges are the links to the parts of time.
func ranges(share string, chosen choice) []choice {
	all := choices()
	for i := range all {
		q := url.Values{"range": {all[i].value}}
		if share != "" {
			q.Set("share", share)
		}
		all[i].Href, all[i].Current = "?"+q.Encode(), all[i].value == chosen.value
	}
	return all
}

// refuse answers who is not shown the statistics. Whether there is such a link is told
// to nobody who has no key.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, k link.Key, share string, err error) {
	gone := errors.Is(err, auth.ErrUnauthenticated) || errors.Is(err, link.ErrNotFound)
	switch {
	case errors.Is(err, errNoEntry):
		h.write(w, r, http.StatusOK, "key", h.ask(r, k, ""))
	case gone && share != "":
		h.say(w, r, http.StatusForbidden, "No longer shared", "These statistics are not shared, or not any more. Ask whoever sent you the address for another.", "")
	default:
		h.refuseKey(w, r, k, err)
	}
}

// find makes sure that the caller may read the statistics of k, and returns the link to
// those who may read it, too.
func (h *Handler) find(ctx context.Context, who auth.Principal, k link.Key) (l link.Link, known bool, err error) {
	if err := h.Links.Exists(ctx, who, k); err != nil {
		return l, false, err
	}
	if readable := auth.May(who, auth.ReadLink, auth.Resource{}) == nil; !readable {
		return l, false, nil
	}
	l, err = h.Links.Get(ctx, who, k)
	return l, true, err
}

func (h *Handler) facts(l *link.Link) *facts {
	f := &facts{Name: l.Title, State: strings.ReplaceAll(l.Target().At(h.Now()).String(), "_", " "), Destination: destinationOf(l.Destination), Created: l.Created}
	if !l.Expires.IsZero() {
		f.Expires = &l.Expires
	}
	return f
}

// count fills in what was counted.
func (h *Handler) count(ctx context.Context, page *statistics, k link.Key, chosen choice) error {
	now := h.Now()
	totals, err := h.Stats.Totals(ctx, analytics.Scope{Key: k}, now)
	if err != nil {
		return fmt.Errorf("statistics of %s: %w", k, err)
	}
	scope := analytics.Scope{Key: k, To: chosen.step.Ceil(now.UTC(), time.UTC), Zone: time.UTC}
	scope.From = chosen.step.Back(scope.To, chosen.n)
	series, err := h.Stats.Series(ctx, scope, chosen.step, now)
	if err != nil {
		return fmt.Errorf("statistics of %s: %w", k, err)
	}
	dimensions := make([]clicks.Dimension, clicks.NumDimensions)
	for i := range dimensions {
		dimensions[i] = clicks.Dimension(i)
	}
	top, err := h.Stats.Top(ctx, scope, topRows, now, dimensions...)
	if err != nil {
		return fmt.Errorf("statistics of %s: %w", k, err)
	}
	page.Totals = []total{
		{"Clicks", number(totals.Clicks)},
		{"By people", number(totals.Humans)},
		{"By programs", number(totals.Clicks - totals.Humans)},
		{"In 24 hours", number(totals.Clicks24h)},
		{"Visitors, by day", number(totals.VisitorDays)},
		{"Previews", number(totals.Previews)},
	}
	page.Last, page.Complete = instant(totals.LastClicked), instant(totals.CompleteUntil)
	page.Chart = chartOf(series, scope, chosen.word)
	for i, rows := range top {
		if len(rows) > 0 {
			page.Tables = append(page.Tables, breakdownOf(dimensionTitles()[dimensions[i]], rows))
		}
	}
	return nil
}

func breakdownOf(name string, rows []analytics.Row) breakdown {
	b := breakdown{Name: name}
	for _, r := range rows {
		value := r.Value
		if value == "" {
			value = "(unknown)"
		}
		percent := float64(r.Clicks) / float64(max(rows[0].Clicks, 1)) * 100
		b.Rows = append(b.Rows, row{value, number(r.Clicks), strconv.FormatFloat(percent, 'f', 1, 64)})
	}
	return b
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// number writes n in groups of three digits.
func number(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// unavailable reports whether the error of a question may be gone in a moment.
func unavailable(err error) bool {
	return errors.Is(err, link.ErrUnavailable) || errors.Is(err, analytics.ErrUnavailable) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
