package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"curt/internal/auth"
)

// operation is one method of one path: what the API says about it and what it
// does. Its description is binding: query parameters that it does not name are
// refused, and a body is read only where it has one.
type operation struct {
	huma.Operation

	action    auth.Action       // what the principal must be allowed
	anonymous bool              // a principal without a key may be
	open      bool              // callers without a key may, and those with one whatever it carries
	owned     bool              // of an open one: what the body names must be allowed to the principal
	streams   bool              // serve reads the body itself
	affords   func(*call) error // refuses, before the body is read, who is over a limit; nil = none applies
	examples  []example         // at least one where there is a body
	answered  map[string]int    // statuses of the examples, by name
	serve     func(*call) error
}

// secured says what the caller must carry, in the description's words.
func (op *operation) secured() []map[string][]string {
	secured := []map[string][]string{{keyScheme: {}}}
	for i, scope := range op.action.Scopes() {
		secured = append(secured[:i], map[string][]string{keyScheme: {string(scope)}})
	}
	if op.anonymous || op.open {
		secured = append(secured, map[string][]string{})
	}
	return secured
}

// call is one request on its way through its operation.
type call struct {
	api   *api
	op    *operation
	w     http.ResponseWriter
	r     *http.Request
	who   auth.Principal
	now   time.Time
	query url.Values // checked: declared names, once each
	body  []byte     // valid until serve returns; nil when the operation has none
}

// run is the life of one request: who asks, may they, is the request well
// formed, then the operation itself. The first error ends it.
func (a *api) run(op *operation, w http.ResponseWriter, r *http.Request) {
	defer a.recover(w, r)
	c := call{api: a, op: op, w: w, r: r, now: a.now()}
	err := c.admit()
	if err == nil {
		err = c.parseQuery()
	}
	if err == nil && op.RequestBody != nil && !op.streams {
		err = c.withBody(op.serve)
	} else if err == nil {
		err = op.serve(&c)
	}
	if err != nil {
		a.fail(w, r, err)
	}
	a.failures.over(r.Context(), a.log, a.now())
}

// recover turns a panic into a logged 500, unless it is net/http's own way to cut
// a connection.
func (a *api) recover(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	a.fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
}

// admit finds the caller and refuses who may not do this. A browser that another
// site sends here may change nothing, whatever it carries.
func (c *call) admit() error {
	if err := c.api.origins.Check(c.r); err != nil {
		return &refusal{kind: kindOrigin(), detail: "send the request from this service's own pages or from a program"}
	}
	who, err := c.api.auth.Authenticate(c.r, c.api.addr(c.r), c.now)
	if err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	c.who = who
	switch may := c.op.open || auth.May(who, c.op.action, auth.Resource{}) == nil; {
	case who.IsAnonymous() && (!may || !c.op.anonymous && !c.op.open):
		return auth.ErrUnauthenticated
	case !may:
		return auth.ErrForbidden
	case who.IsAnonymous() && !c.api.hosts.Own(c.r.Host):
		return &refusal{kind: kindHost(), detail: "send a key, or the Host of this service: its base URL's or one of its domains"}
	}
	return nil
}

// parseQuery accepts exactly the declared parameters, each at most once.
func (c *call) parseQuery() error {
	if c.r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return badField("", "the query is malformed")
	}
	for name, values := range query {
		declared := slices.ContainsFunc(c.op.Parameters, func(p *huma.Param) bool {
			return p.In == "query" && p.Name == name
		})
		switch {
		case !declared:
			return badField(clip(name), "is no parameter of this operation")
		case len(values) > 1:
			return badField(name, "is given more than once")
		case values[0] == "":
			return badField(name, "is empty")
		}
	}
	c.query = query
	return nil
}

// clip shortens a client's text before an answer repeats it.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "?")
}

// integer returns a query parameter within the bounds that its description names,
// or its default. Only plain decimal digits are a number: no sign, no leading zero.
func (c *call) integer(name string) (int, error) {
	i := slices.IndexFunc(c.op.Parameters, func(p *huma.Param) bool { return p.Name == name })
	schema := c.op.Parameters[i].Schema
	if !c.query.Has(name) {
		return schema.Default.(int), nil
	}
	text := c.query.Get(name)
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text || float64(n) < *schema.Minimum || float64(n) > *schema.Maximum {
		return 0, badField(name, fmt.Sprintf("want a whole number from %.0f to %.0f", *schema.Minimum, *schema.Maximum))
	}
	return n, nil
}

// instant returns a query parameter that is a date, or otherwise.
func (c *call) instant(name string, otherwise time.Time) (time.Time, error) {
	if !c.query.Has(name) {
		return otherwise, nil
	}
	t, err := parseDate(c.query.Get(name))
	if err != nil {
		return time.Time{}, badField(name, err.Error())
	}
	return t, nil
}

// choice returns a query parameter that its description bounds to one of enums, or
// its default.
func (c *call) choice(name string) (string, error) {
	i := slices.IndexFunc(c.op.Parameters, func(p *huma.Param) bool { return p.Name == name })
	schema := c.op.Parameters[i].Schema
	if !c.query.Has(name) {
		otherwise, _ := schema.Default.(string)
		return otherwise, nil
	}
	value, choices := c.query.Get(name), c.api.schemas.SchemaFromRef(schema.Ref).Enum
	if !slices.Contains(choices, any(value)) {
		return "", badField(name, fmt.Sprintf("want one of %v", choices))
	}
	return value, nil
}

// flag returns a query parameter that is true or false, or false.
func (c *call) flag(name string) (bool, error) {
	switch c.query.Get(name) {
	case "true":
		return true, nil
	case "false", "": // an empty value was refused before
		return false, nil
	}
	return false, badField(name, "want true or false")
}

// json answers with a value.
func (c *call) json(status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	h := c.w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(text))} // net/http says it of short answers only
	commonHeaders(h)
	c.w.WriteHeader(status)
	_, _ = c.w.Write(text) // the client is gone: nobody is left to tell
	return nil
}

// commonHeaders are on every answer: what the API says is for the caller alone
// and is never a page.
func commonHeaders(h http.Header) {
	h["Cache-Control"] = []string{"no-store"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
}
