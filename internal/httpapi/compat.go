package httpapi

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
)

// The paths and names that published designs of URL shorteners print. Programs
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

// spelling is a row of the table.
type spelling struct {
	path, name string
	body       *huma.RequestBody
	created    *huma.Schema
	examples   []example
	create     func(*call) error
	stats      any // what the statistics are answered as
	serveStats func(*call) error
}

func spellings(d describer) []spelling {
	oneOf := func(a, b any) *huma.Schema {
		return &huma.Schema{OneOf: []*huma.Schema{d.schema(a), d.schema(b)}}
	}
	snake := example{name: "snake_case", body: `{"long_url":"https://example.com/very/long/path?q=1","custom_alias":"my-link"}`}
	camel := example{name: "camelCase", body: `{"longUrl":"https://example.com/very/long/path?q=1","customAlias":"my-link"}`}
	return []spelling{
		{
			path: "/api/v1/urls", name: "urls", body: jsonBody(oneOf(LinkCreate{}, CamelCreate{})),
			created: oneOf(URLsLink{}, URLsCamelLink{}), create: (*call).createURLs, examples: []example{snake, camel},
			stats: URLsStats{}, serveStats: (*call).urlsStats,
		},
		{
			path: shortenPath, name: "shorten", body: jsonBody(d.schema(LinkCreate{})),
			created: d.schema(ShortenLink{}), create: (*call).createShorten, examples: []example{snake},
			stats: V1URLsStats{}, serveStats: (*call).v1URLsStats,
		},
		{
			path: v1Prefix + "urls", name: "v1-urls", body: jsonBody(d.schema(LinkCreate{})),
			created: d.schema(V1URLsLink{}), create: (*call).createV1URLs, examples: []example{snake},
			stats: V1URLsStats{}, serveStats: (*call).v1URLsStats,
		},
		{
			path: v1Prefix + "links", name: "v1-links", body: jsonBody(d.schema(CamelCreate{})),
			created: d.schema(V1LinksLink{}), create: (*call).createV1Links, examples: []example{camel},
			stats: V1LinksStats{}, serveStats: (*call).v1LinksStats,
		},
	}
}

const (
	apiPrefix   = "/api/"
	v1Prefix    = "/v1/"
	shortenPath = "/shorten"
)

// Serves reports whether a request is the API's to answer. GET /shorten is not: a
// path of one segment is a link's, whether there can be such a link or not.
func Serves(r *http.Request) bool {
	p := r.URL.Path
	if p == shortenPath {
		return r.Method != http.MethodGet && r.Method != http.MethodHead
	}
	return strings.HasPrefix(p, apiPrefix) || strings.HasPrefix(p, problemsPrefix) || strings.HasPrefix(p, v1Prefix) || strings.HasPrefix(p, shortenPath+"/")
}

// compatOperations makes three operations of each spelling.
func compatOperations(d describer) (all []*operation) {
	for _, s := range spellings(d) {
		all = append(all, s.operations(d)...)
	}
	return all
}

func (s spelling) operations(d describer) []*operation {
	return []*operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: s.path, OperationID: s.name + "-create",
				Summary: "Make a link", MaxBodyBytes: maxLinkBody, RequestBody: s.body,
				Parameters: []*huma.Param{onceParam()}, Responses: createAnswers(d, s.created),
			},
			action: auth.CreateLink, anonymous: true, affords: (*call).affordCreate, examples: s.examples, serve: s.create,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: s.path + "/{code}", OperationID: s.name + "-delete",
				Summary:    "Delete a link; its code is never used again",
				Parameters: []*huma.Param{codeParam(), domainParam(), ifMatchParam()},
				Responses:  d.answers(204, "The link is gone.", nil, nil, 404, 409, 412, 507),
			},
			action: auth.ChangeLink, serve: (*call).deleteLink,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: s.path + "/{code}/stats", OperationID: s.name + "-stats",
				Summary: "Count the clicks of a link", Parameters: []*huma.Param{codeParam(), domainParam()},
				Responses: d.answers(200, "The statistics.", s.stats, nil, 404),
			},
			action: auth.ReadStats, serve: s.serveStats,
		},
	}
}

func jsonBody(schema *huma.Schema) *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
}
