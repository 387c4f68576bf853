package kernel

import (
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// KeyScheme names the one way to say who is asking.
const KeyScheme = "key"

// The tags of operations, of which each has one. Generators write a file or a class of each.
const (
	TagLinks         = "links"
	TagStatistics    = "statistics"
	TagQR            = "qr"
	TagJobs          = "jobs"
	TagKeys          = "keys"
	TagReviews       = "reviews"
	TagModeration    = "moderation"
	TagServer        = "server"
	TagCompatibility = "compatibility"
)

// Describer fills in what every operation says.
type Describer struct{ Schemas huma.Registry }

// Schema describes v's type, by reference to what is said of it once.
func (d Describer) Schema(v any) *huma.Schema { return d.Schemas.Schema(reflect.TypeOf(v), true, "") }

// Body describes a request body of type v.
func (d Describer) Body(v any, media ...string) *huma.RequestBody {
	schema := d.Schema(v)
	content := map[string]*huma.MediaType{}
	for _, m := range media {
		content[m] = &huma.MediaType{Schema: schema}
	}
	return &huma.RequestBody{Required: true, Content: content}
}

// Answers describes the answer of success and the problems that may come instead.
func (d Describer) Answers(status int, description string, v any, headers map[string]*huma.Param, problems ...int) map[string]*huma.Response {
	success := &huma.Response{Description: description, Headers: headers}
	if v != nil {
		success.Content = map[string]*huma.MediaType{
			"application/json": {Schema: d.Schema(v)},
		}
	}
	responses := map[string]*huma.Response{strconv.Itoa(status): success}
	d.Problems(responses, append(problems, 400, 401, 403, 500, 503)...)
	return responses
}

// Problems adds the problems that may come.
func (d Describer) Problems(responses map[string]*huma.Response, statuses ...int) {
	problem := d.Schemas.Schema(reflect.TypeFor[Problem](), true, "")
	for _, status := range statuses {
		responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Headers:     problemHeaders(status),
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem}},
		}
	}
}

// problemHeaders describes what Kernel.Fail sends with a problem of the status.
func problemHeaders(status int) map[string]*huma.Param {
	switch status {
	case http.StatusUnauthorized:
		return map[string]*huma.Param{"WWW-Authenticate": Header("The authentication scheme: Bearer.")}
	case http.StatusConflict:
		return map[string]*huma.Param{"Retry-After": Number("Of alias-held: seconds until the reservation ends.")}
	case http.StatusServiceUnavailable:
		return map[string]*huma.Param{"Retry-After": Number("Seconds to wait before a retry.")}
	case http.StatusTooManyRequests:
		return WithLimits(map[string]*huma.Param{"Retry-After": Number("Seconds to wait before a retry.")})
	}
	return nil
}

// WithLimits adds what LimitHeaders sends.
func WithLimits(headers map[string]*huma.Param) map[string]*huma.Param {
	headers["X-RateLimit-Limit"] = Number("Creates allowed in a burst. All three headers are absent if no limit applies.")
	headers["X-RateLimit-Remaining"] = Number("Creates left now.")
	headers["X-RateLimit-Reset"] = Number("Seconds until the full burst is available again.")
	return headers
}

// Number describes a header that is a whole number.
func Number(description string) *huma.Param {
	return &huma.Param{Description: description, Schema: &huma.Schema{Type: huma.TypeInteger}}
}

// Header describes a header.
func Header(description string) *huma.Param {
	return &huma.Param{Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
}

// The parameters that several operations take.

// CodeParam is the code of the link in the path.
func CodeParam() *huma.Param {
	return &huma.Param{
		Name: "code", In: "path", Required: true, Description: "The code of the link; case-sensitive.", Example: "manual",
		Schema: &huma.Schema{Type: huma.TypeString, Pattern: "^[A-Za-z0-9_-]{1,64}$"},
	}
}

// DomainParam is the domain of the link.
func DomainParam() *huma.Param {
	return QueryParam("domain", "The domain of the link. Default: the default domain.", &huma.Schema{Type: huma.TypeString})
}

// IfNoneMatchParam is the ETag of what the caller has already.
func IfNoneMatchParam(of string) *huma.Param {
	return &huma.Param{
		Name: "If-None-Match", In: "header", Description: "Return " + of + " only if its ETag differs.", Schema: &huma.Schema{Type: huma.TypeString},
	}
}

// IfMatchParam is the version that a change requires.
func IfMatchParam() *huma.Param {
	return &huma.Param{
		Name: "If-Match", In: "header", Description: `Only if the link has this ETag.`, Example: `"1"`,
		Schema: &huma.Schema{Type: huma.TypeString},
	}
}

// QueryParam describes a parameter of the query.
func QueryParam(name, description string, schema *huma.Schema) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: schema}
}

// ShownWith has the examples send the parameter.
func ShownWith(value any, p *huma.Param) *huma.Param {
	p.Example = value
	return p
}

// EnumSchema is a choice of words; the first is the default.
func EnumSchema(words ...any) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: words, Default: words[0]}
}

// RangeSchema is a whole number within bounds.
func RangeSchema(least, most float64, otherwise int) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most, Default: otherwise}
}

// MediaCSV is the media type of tables.
const MediaCSV = "text/csv"

// Optional returns v, or nil for the zero value. It points into the caller's.
func Optional[T comparable](v *T) *T {
	var zero T
	if *v == zero {
		return nil
	}
	return v
}

// Instant returns t, or nil for the zero time. It points into the caller's.
func Instant(t *time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return t
}
