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
	"curt/internal/shorten/linkservice"
	"curt/internal/web/chart"
)

// topRows is how many values of a dimension are shown.
const topRows = 10

// statistics is the page of "/{code}/stats".
type statistics struct {
	shell
	Short       string
	Link        *facts // nil = who asks may read the statistics only
	Totals      []total
	Last        *time.Time
	Ranges      []choice
	Chart       chart.Chart
	Tables      []breakdown
	Complete    *time.Time
	AsOf        *time.Time // nil = the numbers are those of now
	Leave       string     // where the form goes that takes the entry back; "" = a share
	Attribution string     // of the data of countries
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
		{Name: "12 months", value: "365d", step: analytics.Day, n: 365, word: "day"},
	}
}

// dimensionTitles names the dimensions for people.
func dimensionTitles() map[clicks.Dimension]string {
	return map[clicks.Dimension]string{
		clicks.Country: "Countries", clicks.City: "Cities", clicks.Network: "Networks", clicks.ReferrerHost: "Referrers",
		clicks.Device: "Devices", clicks.Browser: "Browsers", clicks.OS: "Operating systems", clicks.Language: "Languages",
		clicks.Trigger: "Triggers", clicks.UTMSource: "UTM sources", clicks.UTMMedium: "UTM media",
		clicks.UTMCampaign: "Campaigns", clicks.UTMTerm: "UTM terms", clicks.UTMContent: "UTM contents",
	}
}

// statsPages show the statistics of a link behind a key or a share.
type statsPages struct {
	*site

	entries     entries
	links       *linkservice.Service
	keys        *auth.Keys
	shares      *auth.Shares
	reader      analytics.Reader
	attribution string // shown below countries; "" = none
}

// serve answers "/{code}/stats".
func (p *statsPages) serve(w http.ResponseWriter, r *http.Request, k link.Key) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		p.enter(w, r, k)
		return
	default:
		p.methods(w, r)
		return
	}
	w.Header()["X-Robots-Tag"] = []string{"noindex"}
	share, chosen, ok := question(r.URL.RawQuery)
	if !ok {
		p.say(w, r, http.StatusBadRequest, "Invalid request", "The query may contain share and range, once each; range is 48h, 30d or 365d.", "")
		return
	}
	if share != "" { // the address is the secret
		w.Header()["Referrer-Policy"] = []string{"no-referrer"}
	}
	who, err := p.viewer(r, k, share)
	if err != nil {
		p.refuse(w, r, k, share, err)
		return
	}
	l, known, err := p.find(r.Context(), who, k)
	if err != nil {
		p.refuse(w, r, k, share, err)
		return
	}
	page := statistics{shell: p.pages.shell("Statistics of " + string(k.Code)), Short: p.hosts.Load().ShortURL(k), Ranges: ranges(share, chosen)}
	page.Wide, page.Attribution = true, p.attribution
	if known {
		page.Link = p.facts(&l)
	}
	if share == "" {
		page.Leave = r.URL.EscapedPath()
	}
	if err := p.count(r.Context(), &page, k, chosen); err != nil {
		p.refuse(w, r, k, share, err)
		return
	}
	p.write(w, r, http.StatusOK, "stats", page)
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
func (p *statsPages) refuse(w http.ResponseWriter, r *http.Request, k link.Key, share string, err error) {
	gone := errors.Is(err, auth.ErrUnauthenticated) || errors.Is(err, link.ErrNotFound)
	switch {
	case errors.Is(err, errNoEntry):
		p.write(w, r, http.StatusOK, "key", p.ask(r, k, ""))
	case gone && share != "":
		p.say(w, r, http.StatusForbidden, "Share link expired", "These statistics are not shared, or no longer shared. Ask the sender for a new link.", "")
	default:
		p.refuseKey(w, r, k, err)
	}
}

// find makes sure that the caller may read the statistics of k, and returns the link to
// those who may read it, too.
func (p *statsPages) find(ctx context.Context, who auth.Principal, k link.Key) (l link.Link, known bool, err error) {
	if err := p.links.Exists(ctx, who, k); err != nil {
		return l, false, err
	}
	if readable := auth.May(who, auth.ReadLink, auth.Resource{}) == nil; !readable {
		return l, false, nil
	}
	l, err = p.links.Get(ctx, who, k)
	return l, true, err
}

func (p *statsPages) facts(l *link.Link) *facts {
	f := &facts{Name: l.Title, State: strings.ReplaceAll(l.Target().At(p.now()).String(), "_", " "), Destination: destinationOf(l.Destination), Created: l.Created}
	if !l.Expires.IsZero() {
		f.Expires = &l.Expires
	}
	return f
}

// count fills in what was counted.
func (p *statsPages) count(ctx context.Context, page *statistics, k link.Key, chosen choice) error {
	now := p.now()
	ctx, age := analytics.WithAge(ctx)
	totals, err := p.reader.Totals(ctx, analytics.Scope{Key: k}, now)
	if err != nil {
		return fmt.Errorf("statistics of %s: %w", k, err)
	}
	scope := analytics.Scope{Key: k, To: chosen.step.Ceil(now.UTC(), time.UTC), Zone: time.UTC}
	scope.From = chosen.step.Back(scope.To, chosen.n)
	series, err := p.reader.Series(ctx, scope, chosen.step, now)
	if err != nil {
		return fmt.Errorf("statistics of %s: %w", k, err)
	}
	dimensions := make([]clicks.Dimension, clicks.NumDimensions)
	for i := range dimensions {
		dimensions[i] = clicks.Dimension(i)
	}
	top, err := p.reader.Top(ctx, scope, topRows, now, dimensions...)
	if err != nil {
		return fmt.Errorf("statistics of %s: %w", k, err)
	}
	page.Totals = []total{
		{"Clicks", chart.Number(totals.Clicks)},
		{"Humans", chart.Number(totals.Humans)},
		{"Bots", chart.Number(totals.Clicks - totals.Humans)},
		{"Last 24 hours", chart.Number(totals.Clicks24h)},
		{"Daily unique visitors", chart.Number(totals.VisitorDays)},
		{"Previews", chart.Number(totals.Previews)},
	}
	page.Last, page.Complete = instant(totals.LastClicked), instant(totals.CompleteUntil)
	page.AsOf = instant(age.AsOf())
	page.Chart = chart.Of(series, scope, chosen.word)
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
		b.Rows = append(b.Rows, row{value, chart.Number(r.Clicks), strconv.FormatFloat(percent, 'f', 1, 64)})
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

// unavailable reports whether the error of a question may be gone in a moment.
func unavailable(err error) bool {
	return errors.Is(err, link.ErrUnavailable) || errors.Is(err, analytics.ErrUnavailable) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
