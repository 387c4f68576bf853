package httpapi

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// apiVersion is that of the paths below /api/v1, not the program's: programs of one
// version say the same.
const apiVersion = "1"

// keyScheme names the one way to say who is asking.
const keyScheme = "key"

// The tags of operations, of which each has one. Generators make a file or a class of each.
const (
	tagLinks         = "links"
	tagStatistics    = "statistics"
	tagQR            = "qr"
	tagKeys          = "keys"
	tagReviews       = "reviews"
	tagModeration    = "moderation"
	tagServer        = "server"
	tagCompatibility = "compatibility"
)

// tags says what the operations of each tag are about, in the order in which people read.
func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: tagLinks, Description: "Create, list, read, change and delete links."},
		{Name: tagStatistics, Description: "Count and list the clicks of one link or of all, follow them live, and share the numbers."},
		{Name: tagQR, Description: "QR codes of links, and of links that are still to be created."},
		{Name: tagKeys, Description: "API keys, and what the key of a request may do."},
		{Name: tagReviews, Description: "Reports of visitors, appeals of owners, and the queue of moderators."},
		{Name: tagModeration, Description: "Decisions about links, bans, and the journal of both."},
		{Name: tagServer, Description: "How the server does."},
		{Name: tagCompatibility, Description: "Paths and spellings of earlier APIs, for clients that were written for them."},
	}
}

// tagged gives the tag to the operations that have none.
func tagged(tag string, lists ...[]*operation) []*operation {
	all := slices.Concat(lists...)
	for _, op := range all {
		if op.Tags == nil {
			op.Tags = []string{tag}
		}
	}
	return all
}

// describe returns the description of the API at a base URL, that no operation is in yet.
// huma's own routes for documents are off: they would fetch a page's parts from elsewhere.
func describe(mux *http.ServeMux, base string) huma.API {
	cfg := huma.DefaultConfig("curt", apiVersion)
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath, cfg.CreateHooks = "", "", "", nil
	cfg.Info.Description = "Makes short links, changes them and counts their clicks. " +
		"Every problem is an application/problem+json (RFC 9457) with a stable type."
	cfg.Servers, cfg.Tags = []*huma.Server{{URL: base, Description: "The server that this describes."}}, tags()
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		keyScheme: {Type: "http", Scheme: "bearer", Description: "An API key, which begins with curt_."},
	}
	cfg.Security = []map[string][]string{{keyScheme: {}}}
	return humago.New(mux, cfg)
}

// describer fills in what every operation says.
type describer struct{ schemas huma.Registry }

// schema describes v's type, by reference to what is said of it once.
func (d describer) schema(v any) *huma.Schema { return d.schemas.Schema(reflect.TypeOf(v), true, "") }

// body describes a request body of type v.
func (d describer) body(v any, media ...string) *huma.RequestBody {
	schema := d.schema(v)
	content := map[string]*huma.MediaType{}
	for _, m := range media {
		content[m] = &huma.MediaType{Schema: schema}
	}
	return &huma.RequestBody{Required: true, Content: content}
}

// answers describes the answer of success and the problems that may come instead.
func (d describer) answers(status int, description string, v any, headers map[string]*huma.Param, problems ...int) map[string]*huma.Response {
	success := &huma.Response{Description: description, Headers: headers}
	if v != nil {
		success.Content = map[string]*huma.MediaType{
			"application/json": {Schema: d.schema(v)},
		}
	}
	responses := map[string]*huma.Response{strconv.Itoa(status): success}
	d.problems(responses, append(problems, 400, 401, 403, 500, 503)...)
	return responses
}

// problems adds the problems that may come.
func (d describer) problems(responses map[string]*huma.Response, statuses ...int) {
	problem := d.schemas.Schema(reflect.TypeFor[Problem](), true, "")
	for _, status := range statuses {
		responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Headers:     problemHeaders(status),
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem}},
		}
	}
}

// problemHeaders describes what api.fail sends with a problem of the status.
func problemHeaders(status int) map[string]*huma.Param {
	switch status {
	case http.StatusUnauthorized:
		return map[string]*huma.Param{"WWW-Authenticate": header("How to say who is asking: the scheme Bearer.")}
	case http.StatusServiceUnavailable:
		return map[string]*huma.Param{"Retry-After": number("Seconds to wait.")}
	case http.StatusTooManyRequests:
		return withLimits(map[string]*huma.Param{"Retry-After": number("Seconds to wait.")})
	}
	return nil
}

// withLimits adds what limitState sends.
func withLimits(headers map[string]*huma.Param) map[string]*huma.Param {
	headers["X-RateLimit-Limit"] = number("The most creates at once; absent where no limit applies, like the other two.")
	headers["X-RateLimit-Remaining"] = number("Creates that are left of them now.")
	headers["X-RateLimit-Reset"] = number("Seconds until all of them are there again.")
	return headers
}

func number(description string) *huma.Param {
	return &huma.Param{Description: description, Schema: &huma.Schema{Type: huma.TypeInteger}}
}

func header(description string) *huma.Param {
	return &huma.Param{Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
}

// The parameters that several operations take.

func codeParam() *huma.Param {
	return &huma.Param{
		Name: "code", In: "path", Required: true, Description: "The code of the link; case matters.", Example: "manual",
		Schema: &huma.Schema{Type: huma.TypeString, Pattern: "^[A-Za-z0-9_-]{1,64}$"},
	}
}

func domainParam() *huma.Param {
	return queryParam("domain", "The domain of the link; without it the default domain.", &huma.Schema{Type: huma.TypeString})
}

func ifMatchParam() *huma.Param {
	return &huma.Param{
		Name: "If-Match", In: "header", Description: `Do it only while the link has this ETag.`, Example: `"1"`,
		Schema: &huma.Schema{Type: huma.TypeString},
	}
}

func queryParam(name, description string, schema *huma.Schema) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: schema}
}

// shownWith has the examples send the parameter.
func shownWith(value any, p *huma.Param) *huma.Param {
	p.Example = value
	return p
}

// enumSchema is a choice of words; the first is the default.
func enumSchema(words ...any) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: words, Default: words[0]}
}
