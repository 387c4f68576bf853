// Package articles serves the paths and names that published designs of URL shorteners print. Programs
// written after them work as they are: each spelling is a thin alias of the same
// handlers, with the same callers, limits, rules and problems, and answers the
// fields that its design prints, no others.
//
//	path          | create takes                 | create answers                     | statistics
//	/api/v1/urls  | what /api/v1/links takes     | URLsLink                           | URLsStats
//	              | or camelCase: CamelCreate    | URLsCamelLink                      |
//	/shorten      | what /api/v1/links takes     | ShortenLink                        | V1URLsStats
//	/v1/urls      | what /api/v1/links takes     | V1URLsLink                         | V1URLsStats
//	/v1/links     | camelCase: CamelCreate       | V1LinksLink                        | V1LinksStats
//
// Each has POST on the path itself, DELETE on path/{code} and GET on
// path/{code}/stats. A link made by one spelling is a link like any other.
//
// The table is what spellings returns.
package articles

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/clicks"
	"curt/internal/httpapi/kernel"
	"curt/internal/httpapi/links"
	"curt/internal/link"
	"curt/internal/shorten"
)

// articles are the operations of all spellings.
type articles struct{ links *links.Links }

// Operations makes three operations of each spelling.
func Operations(d kernel.Describer, l *links.Links) (all []*kernel.Operation) {
	ar := &articles{l}
	for _, s := range ar.spellings(d) {
		all = append(all, ar.operations(d, s)...)
	}
	return all
}

// spelling is a row of the table.
type spelling struct {
	path, name string
	body       *huma.RequestBody
	created    *huma.Schema
	examples   []kernel.Example
	create     func(*kernel.Call) error
	shown      any // what the statistics are answered as
	stats      func(*kernel.Call) error
}

func (ar *articles) spellings(d kernel.Describer) []spelling {
	oneOf := func(a, b any) *huma.Schema {
		return &huma.Schema{OneOf: []*huma.Schema{d.Schema(a), d.Schema(b)}}
	}
	snake := kernel.Example{Name: "snake_case", Body: `{"long_url":"https://example.com/very/long/path?q=1","custom_alias":"my-link"}`}
	camel := kernel.Example{Name: "camelCase", Body: `{"longUrl":"https://example.com/very/long/path?q=1","customAlias":"my-link"}`}
	return []spelling{
		{
			path: "/api/v1/urls", name: "urls", body: jsonBody(oneOf(links.LinkCreate{}, CamelCreate{})),
			created: oneOf(URLsLink{}, URLsCamelLink{}), create: ar.createURLs, examples: []kernel.Example{snake, camel},
			shown: URLsStats{}, stats: kernel.Reply(http.StatusOK, ar.urlsStats),
		},
		{
			path: shortenPath, name: "shorten", body: jsonBody(d.Schema(links.LinkCreate{})),
			created: d.Schema(ShortenLink{}), create: ar.createShorten, examples: []kernel.Example{snake},
			shown: V1URLsStats{}, stats: kernel.Reply(http.StatusOK, ar.v1URLsStats),
		},
		{
			path: v1Prefix + "urls", name: "v1-urls", body: jsonBody(d.Schema(links.LinkCreate{})),
			created: d.Schema(V1URLsLink{}), create: ar.createV1URLs, examples: []kernel.Example{snake},
			shown: V1URLsStats{}, stats: kernel.Reply(http.StatusOK, ar.v1URLsStats),
		},
		{
			path: v1Prefix + "links", name: "v1-links", body: jsonBody(d.Schema(CamelCreate{})),
			created: d.Schema(V1LinksLink{}), create: ar.createV1Links, examples: []kernel.Example{camel},
			shown: V1LinksStats{}, stats: kernel.Reply(http.StatusOK, ar.v1LinksStats),
		},
	}
}

const (
	v1Prefix    = "/v1/"
	shortenPath = "/shorten"
)

// Serves reports whether a request is for a path of an article. GET /shorten is not: a path of
// one segment is a link's, whether there can be such a link or not.
func Serves(r *http.Request) bool {
	p := r.URL.Path
	if p == shortenPath {
		return r.Method != http.MethodGet && r.Method != http.MethodHead
	}
	return strings.HasPrefix(p, v1Prefix) || strings.HasPrefix(p, shortenPath+"/")
}

func (ar *articles) operations(d kernel.Describer, s spelling) []*kernel.Operation {
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: s.path, OperationID: s.name + "-create",
				Summary: "Create a link", MaxBodyBytes: links.MaxBody, RequestBody: s.body,
				Parameters: []*huma.Param{links.OnceParam()}, Responses: links.CreateAnswers(d, s.created),
			},
			Action: auth.CreateLink, Anonymous: true, Affords: ar.links.Afford, Examples: s.examples, Serve: s.create,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: s.path + "/{code}", OperationID: s.name + "-delete",
				Summary:    "Delete a link; its code is never reused",
				Parameters: []*huma.Param{kernel.CodeParam(), kernel.DomainParam(), kernel.IfMatchParam()},
				Responses:  d.Answers(204, "The link was deleted.", nil, nil, 404, 409, 410, 412, 507),
			},
			Action: auth.ChangeLink, Serve: kernel.Done(http.StatusNoContent, ar.links.Delete),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: s.path + "/{code}/stats", OperationID: s.name + "-stats",
				Summary: "Get the statistics of a link", Parameters: []*huma.Param{kernel.CodeParam(), kernel.DomainParam()},
				Responses: d.Answers(200, "The statistics.", s.shown, nil, 404),
			},
			Action: auth.ReadStats, Serve: s.stats,
		},
	}
}

func jsonBody(schema *huma.Schema) *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
}

// CamelCreate is the body that asks for a link in camelCase.
type CamelCreate struct {
	LongURL     kernel.Opt[string]      `json:"longUrl" format:"uri" maxLength:"8192" nullable:"false" doc:"The destination URL: http or https."`
	CustomAlias kernel.Opt[string]      `json:"customAlias" required:"false" pattern:"^[A-Za-z0-9_-]{3,64}$" doc:"The code of the link. Default: generated."`
	ExpiresAt   kernel.Opt[kernel.Date] `json:"expiresAt" required:"false" doc:"When the link expires."`
}

// URLsLink answers a create at /api/v1/urls.
type URLsLink struct {
	ShortURL  string     `json:"short_url" format:"uri"`
	LongURL   string     `json:"long_url" format:"uri"`
	ExpiresAt *time.Time `json:"expires_at"`
	CreatedAt time.Time  `json:"created_at"`
}

// URLsCamelLink answers a create at /api/v1/urls that was sent in camelCase.
type URLsCamelLink struct {
	ShortCode string     `json:"shortCode"`
	ShortURL  string     `json:"shortUrl" format:"uri"`
	LongURL   string     `json:"longUrl" format:"uri"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt,omitzero" doc:"Present only if the link expires."`
}

// ShortenLink answers a create at /shorten.
type ShortenLink struct {
	ShortCode string     `json:"short_code"`
	ShortURL  string     `json:"short_url" format:"uri"`
	LongURL   string     `json:"long_url" format:"uri"`
	ExpiresAt *time.Time `json:"expires_at"`
	CreatedAt time.Time  `json:"created_at"`
}

// V1URLsLink answers a create at /v1/urls.
type V1URLsLink struct {
	ShortCode string    `json:"short_code"`
	ShortURL  string    `json:"short_url" format:"uri"`
	CreatedAt time.Time `json:"created_at"`
}

// V1LinksLink answers a create at /v1/links.
type V1LinksLink struct {
	ShortCode string `json:"shortCode"`
	ShortURL  string `json:"shortUrl" format:"uri"`
}

// createURLs tells the two spellings of its path apart by the names sent.
func (ar *articles) createURLs(c *kernel.Call) error {
	if camelCased(c.Body) {
		return ar.createCamel(c, func(l *link.Link) any {
			return URLsCamelLink{
				ShortCode: string(l.Key.Code), ShortURL: ar.links.ShortURL(l.Key), LongURL: l.Destination,
				CreatedAt: l.Created, ExpiresAt: kernel.Instant(&l.Expires),
			}
		})
	}
	return ar.createSnake(c, func(l *link.Link) any {
		return URLsLink{
			ShortURL: ar.links.ShortURL(l.Key), LongURL: l.Destination, ExpiresAt: kernel.Instant(&l.Expires), CreatedAt: l.Created,
		}
	})
}

func (ar *articles) createShorten(c *kernel.Call) error {
	return ar.createSnake(c, func(l *link.Link) any {
		return ShortenLink{
			ShortCode: string(l.Key.Code), ShortURL: ar.links.ShortURL(l.Key), LongURL: l.Destination,
			ExpiresAt: kernel.Instant(&l.Expires), CreatedAt: l.Created,
		}
	})
}

func (ar *articles) createV1URLs(c *kernel.Call) error {
	return ar.createSnake(c, func(l *link.Link) any {
		return V1URLsLink{ShortCode: string(l.Key.Code), ShortURL: ar.links.ShortURL(l.Key), CreatedAt: l.Created}
	})
}

func (ar *articles) createV1Links(c *kernel.Call) error {
	return ar.createCamel(c, func(l *link.Link) any {
		return V1LinksLink{ShortCode: string(l.Key.Code), ShortURL: ar.links.ShortURL(l.Key)}
	})
}

// create creates the link of a body, and answers what show returns.
func (ar *articles) create(c *kernel.Call, body *links.LinkCreate, show func(*link.Link) any) error {
	created, status, err := ar.links.Create(c, body)
	if err != nil {
		return err
	}
	return c.JSON(status, show(&created.Link))
}

func (ar *articles) createSnake(c *kernel.Call, show func(*link.Link) any) error {
	var body links.LinkCreate
	if err := kernel.Decode(c.Body, &body); err != nil {
		return err
	}
	return ar.create(c, &body, show)
}

// createCamel also blames fields by the names that the caller knows.
func (ar *articles) createCamel(c *kernel.Call, show func(*link.Link) any) error {
	var sent CamelCreate
	if err := kernel.Decode(c.Body, &sent); err != nil {
		return err
	}
	body := links.LinkCreate{LinkFields: links.LinkFields{LongURL: sent.LongURL, ExpiresAt: sent.ExpiresAt}, CustomAlias: sent.CustomAlias}
	err := ar.create(c, &body, show)
	if wrong, ok := errors.AsType[*shorten.InvalidError](err); ok {
		return kernel.BadField(camel(wrong.Field), wrong.PublicMessage())
	}
	return err
}

// camelCased reports whether the body sends a name of CamelCreate. What is no JSON,
// or mixes the two, is for the strict decoder to refuse.
func camelCased(body []byte) bool {
	var sent struct {
		LongURL     jsontext.Value `json:"longUrl"`
		CustomAlias jsontext.Value `json:"customAlias"`
		ExpiresAt   jsontext.Value `json:"expiresAt"`
	}
	// The error does not matter: what stands before it was read.
	_ = json.Unmarshal(body, &sent, jsontext.AllowDuplicateNames(true))
	return sent.LongURL != nil || sent.CustomAlias != nil || sent.ExpiresAt != nil
}

// camel turns the name of a field, such as long_url, into camelCase.
func camel(name string) string {
	first, rest, _ := strings.Cut(name, "_")
	for word := range strings.SplitSeq(rest, "_") {
		if word != "" {
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return first
}

// URLsStats are the statistics at /api/v1/urls/{code}/stats.
type URLsStats struct {
	TotalClicks  uint64   `json:"total_clicks"`
	Clicks24h    uint64   `json:"clicks_24h" doc:"The part of total_clicks in the last 24 hours."`
	TopReferrers []string `json:"top_referrers" nullable:"false" doc:"Up to ten hosts, most clicks first."`
	TopCountries []string `json:"top_countries" nullable:"false" doc:"Up to ten ISO 3166-1 codes, most clicks first."`
}

// V1URLsStats are the statistics at /v1/urls/{code}/stats and /shorten/{code}/stats.
type V1URLsStats struct {
	Clicks    uint64            `json:"clicks"`
	ByCountry map[string]uint64 `json:"by_country" doc:"By ISO 3166-1 code; clicks of unknown origin are left out."`
	ByDay     []DayClicks       `json:"by_day" nullable:"false" doc:"The last 30 days in UTC, today last."`
}

// DayClicks are the clicks of one day.
type DayClicks struct {
	Day    string `json:"day" format:"date"`
	Clicks uint64 `json:"clicks"`
}

// V1LinksStats are the statistics at /v1/links/{code}/stats.
type V1LinksStats struct {
	TotalClicks   uint64     `json:"totalClicks"`
	LastUpdatedAt *time.Time `json:"lastUpdatedAt" doc:"When the count was last updated."`
}

const (
	// topListed is how many names a list of the most clicked has.
	topListed = 10
	// daysListed is how many days are listed, as in the series by day.
	daysListed = 30
)

func (ar *articles) urlsStats(c *kernel.Call) (s URLsStats, err error) {
	k, totals, err := ar.totals(c)
	if err != nil {
		return s, err
	}
	// Two more, for what is no host.
	top, err := ar.links.Stats.Top(c.R.Context(), analytics.Scope{Key: k}, topListed+2, c.Now, clicks.ReferrerHost, clicks.Country)
	if err != nil {
		return s, fmt.Errorf("top values of %s: %w", k, err)
	}
	return URLsStats{
		TotalClicks: totals.Clicks, Clicks24h: totals.Clicks24h, TopReferrers: names(top[0]), TopCountries: names(top[1]),
	}, nil
}

// names returns the values of the rows that are names, in order.
func names(rows []analytics.Row) []string {
	list := []string{}
	for _, r := range rows {
		if r.Value != clicks.Direct && r.Value != clicks.Other && len(list) < topListed {
			list = append(list, r.Value)
		}
	}
	return list
}

func (ar *articles) v1URLsStats(c *kernel.Call) (s V1URLsStats, err error) {
	k, totals, err := ar.totals(c)
	if err != nil {
		return s, err
	}
	top, err := ar.links.Stats.Top(c.R.Context(), analytics.Scope{Key: k}, clicks.MaxValues, c.Now, clicks.Country)
	if err != nil {
		return s, fmt.Errorf("countries of %s: %w", k, err)
	}
	days, err := ar.days(c, k)
	if err != nil {
		return s, err
	}
	s = V1URLsStats{Clicks: totals.Clicks, ByCountry: make(map[string]uint64, len(top[0])), ByDay: days}
	for _, r := range top[0] {
		if r.Value != clicks.Other {
			s.ByCountry[r.Value] = r.Clicks
		}
	}
	return s, nil
}

// days returns the clicks of each of the last days.
func (ar *articles) days(c *kernel.Call, k link.Key) ([]DayClicks, error) {
	const day = 24 * time.Hour
	end := c.Now.UTC().Truncate(day).Add(day)
	series, err := ar.links.Stats.Series(c.R.Context(), analytics.Scope{Key: k, From: end.Add(-daysListed * day), To: end}, analytics.Day, c.Now)
	if err != nil {
		return nil, fmt.Errorf("daily clicks of %s: %w", k, err)
	}
	list := make([]DayClicks, len(series))
	for i, p := range series {
		list[i] = DayClicks{Day: p.Start.Format(time.DateOnly), Clicks: p.Clicks}
	}
	return list, nil
}

func (ar *articles) v1LinksStats(c *kernel.Call) (s V1LinksStats, err error) {
	_, totals, err := ar.totals(c)
	if err != nil {
		return s, err
	}
	return V1LinksStats{TotalClicks: totals.Clicks, LastUpdatedAt: kernel.Instant(&totals.LastUpdated)}, nil
}

// totals finds the link of the path, for a caller who may see it, and its sums.
func (ar *articles) totals(c *kernel.Call) (k link.Key, t analytics.Totals, err error) {
	if k, err = ar.links.Key(c); err != nil {
		return k, t, err
	}
	if err = ar.links.Service.Exists(c.R.Context(), c.Who, k); err != nil {
		return k, t, err
	}
	if t, err = ar.links.Stats.Totals(c.R.Context(), analytics.Scope{Key: k}, c.Now); err != nil {
		return k, t, fmt.Errorf("statistics of %s: %w", k, err)
	}
	return k, t, nil
}
