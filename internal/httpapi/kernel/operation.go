package kernel

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
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

// Operation is one method of one path: what the API says about it and what it
// does. Its description is binding: query parameters that it does not name are
// refused, and a body is read only where it has one.
type Operation struct {
	huma.Operation

	Action    auth.Action       // what the principal must be allowed
	Anonymous bool              // a principal without a key may be
	Open      bool              // callers without a key may, and those with one whatever it carries
	Owned     bool              // of an open one: what the body names must be allowed to the principal
	Streams   bool              // Serve reads the body itself
	Affords   func(*Call) error // refuses a caller over a limit before the body is read; nil = no limit applies
	Examples  []Example         // at least one where there is a body
	Answered  map[string]int    // statuses of the examples, by name
	Serve     func(*Call) error
}

// Example is a request that the description shows. Its parameters are those that have an
// example of their own; its answer was recorded by the test that sends it (make api), so that
// no example says what the API does not do.
type Example struct {
	Name    string // what it shows, unique within its operation
	Summary string
	Body    string // JSON
}

// OnlyExample is the name of the example of an operation without a body.
const OnlyExample = "example"

// Shown are the examples of an operation: those it names, or the one that its parameters make.
func (op *Operation) Shown() []Example {
	if len(op.Examples) == 0 && op.RequestBody == nil {
		return []Example{{Name: OnlyExample}}
	}
	return op.Examples
}

// Secured says what the caller must carry, in the description's words.
func (op *Operation) Secured() []map[string][]string {
	secured := []map[string][]string{{KeyScheme: {}}}
	for i, scope := range op.Action.Scopes() {
		secured = append(secured[:i], map[string][]string{KeyScheme: {string(scope)}})
	}
	if op.Anonymous || op.Open {
		secured = append(secured, map[string][]string{})
	}
	return secured
}

// Call is one request on its way through its operation.
type Call struct {
	kernel *Kernel
	op     *Operation

	W     http.ResponseWriter
	R     *http.Request
	Who   auth.Principal
	Now   time.Time
	Query url.Values // checked: declared names, once each
	Body  []byte     // valid until Serve returns; nil when the operation has none
}

// Run is the life of one request: who asks, may they, is the request well
// formed, then the operation itself. The first error ends it.
func (k *Kernel) Run(op *Operation, w http.ResponseWriter, r *http.Request) {
	defer k.recover(w, r)
	c := Call{kernel: k, op: op, W: w, R: r, Now: k.cfg.Now()}
	err := c.admit()
	if err == nil {
		err = c.parseQuery()
	}
	if err == nil && op.RequestBody == nil && r.Method == http.MethodPost && r.ContentLength != 0 {
		err = BadField("", "expected no body")
	}
	if err == nil && op.RequestBody != nil && !op.Streams {
		err = c.withBody(op.Serve)
	} else if err == nil {
		err = op.Serve(&c)
	}
	if err != nil {
		k.Fail(w, r, err)
	}
	k.failures.over(r.Context(), k.cfg.Log, k.cfg.Now())
}

// recover turns a panic into a logged 500, unless it is net/http's own way to cut
// a connection.
func (k *Kernel) recover(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	k.Fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
}

// admit finds the caller and refuses who may not do this. A browser that another
// site sends here may change nothing, whatever it carries.
func (c *Call) admit() error {
	if err := c.kernel.origins.Check(c.R); err != nil {
		return Refuse(kindOrigin(), "expected a request from this service's own pages, or from outside a browser")
	}
	who, err := c.kernel.cfg.Auth.Authenticate(c.R, c.Addr(), c.Now)
	if err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	c.Who = who
	switch may := c.op.Open || auth.May(who, c.op.Action, auth.Resource{}) == nil; {
	case who.IsAnonymous() && (!may || !c.op.Anonymous && !c.op.Open):
		return auth.ErrUnauthenticated
	case !may:
		return auth.ErrForbidden
	case who.IsAnonymous() && !c.kernel.cfg.Hosts.Load().Names().Own(c.R.Host):
		return Refuse(kindHost(), "send an API key, or use the Host of the base URL or of a configured domain")
	}
	return nil
}

// Action is what the operation of the call does.
func (c *Call) Action() auth.Action { return c.op.Action }

// Addr is the address of the client.
func (c *Call) Addr() netip.Addr { return c.kernel.cfg.ClientAddr(c.R) }

// Entitled reports whether the caller would be admitted now: an answer that continues may not
// outlive the right to it. Without an answer to that it ends, too, and a caller who still may
// begins another. may is what else the operation requires of a caller.
func (c *Call) Entitled(may func(auth.Principal) error) bool {
	who, err := c.kernel.cfg.Auth.Authenticate(c.R, c.Who.Addr, c.kernel.cfg.Now())
	return err == nil && who.KeyID == c.Who.KeyID && auth.May(who, c.op.Action, auth.Resource{}) == nil && may(who) == nil
}

// parseQuery accepts exactly the declared parameters, each at most once.
func (c *Call) parseQuery() error {
	if c.R.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(c.R.URL.RawQuery)
	if err != nil {
		return BadField("", "the query is malformed")
	}
	for name, values := range query {
		declared := slices.ContainsFunc(c.op.Parameters, func(p *huma.Param) bool {
			return p.In == "query" && p.Name == name
		})
		switch {
		case !declared:
			return BadField(Clip(name), "unknown parameter")
		case len(values) > 1:
			return BadField(name, "duplicate parameter")
		case values[0] == "":
			return BadField(name, "must not be empty")
		}
	}
	c.Query = query
	return nil
}

// Clip shortens a client's text before an answer repeats it.
func Clip(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "?")
}

// Integer returns a query parameter within the bounds that its description names,
// or its default. Only plain decimal digits are a number: no sign, no leading zero.
func (c *Call) Integer(name string) (int, error) {
	i := slices.IndexFunc(c.op.Parameters, func(p *huma.Param) bool { return p.Name == name })
	schema := c.op.Parameters[i].Schema
	if !c.Query.Has(name) {
		return schema.Default.(int), nil
	}
	text := c.Query.Get(name)
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text || float64(n) < *schema.Minimum || float64(n) > *schema.Maximum {
		return 0, BadField(name, fmt.Sprintf("expected a whole number from %.0f to %.0f", *schema.Minimum, *schema.Maximum))
	}
	return n, nil
}

// Instant returns a query parameter that is a date, or otherwise.
func (c *Call) Instant(name string, otherwise time.Time) (time.Time, error) {
	if !c.Query.Has(name) {
		return otherwise, nil
	}
	t, err := ParseDate(c.Query.Get(name))
	if err != nil {
		return time.Time{}, BadField(name, err.Error())
	}
	return t, nil
}

// Choice returns a query parameter that its description bounds to one of enums, or
// its default.
func (c *Call) Choice(name string) (string, error) {
	i := slices.IndexFunc(c.op.Parameters, func(p *huma.Param) bool { return p.Name == name })
	schema := c.op.Parameters[i].Schema
	if !c.Query.Has(name) {
		otherwise, _ := schema.Default.(string)
		return otherwise, nil
	}
	value, choices := c.Query.Get(name), c.kernel.cfg.Schemas.SchemaFromRef(schema.Ref).Enum
	if !slices.Contains(choices, any(value)) {
		return "", BadField(name, fmt.Sprintf("expected one of %v", choices))
	}
	return value, nil
}

// Flag returns a query parameter that is true or false, or false.
func (c *Call) Flag(name string) (bool, error) {
	switch c.Query.Get(name) {
	case "true":
		return true, nil
	case "false", "": // an empty value was refused before
		return false, nil
	}
	return false, BadField(name, "expected true or false")
}

// JSON answers with a value.
func (c *Call) JSON(status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a response: %w", err)
	}
	h := c.W.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(text))} // net/http says it of short answers only
	CommonHeaders(h)
	c.W.WriteHeader(status)
	_, _ = c.W.Write(text) // the client is gone: nobody is left to tell
	return nil
}

// CommonHeaders are on every answer: what the API says is for the caller alone
// and is never a page.
func CommonHeaders(h http.Header) {
	h["Cache-Control"] = []string{"no-store"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
}

// Reply is a Serve that answers with what f returns.
func Reply[R any](status int, f func(*Call) (R, error)) func(*Call) error {
	return func(c *Call) error {
		reply, err := f(c)
		if err != nil {
			return err
		}
		return c.JSON(status, reply)
	}
}

// Take is a Serve that decodes the body for f, and answers with what f returns.
func Take[B, R any](status int, f func(*Call, *B) (R, error)) func(*Call) error {
	return Reply(status, func(c *Call) (reply R, err error) {
		var body B
		if err := Decode(c.Body, &body); err != nil {
			return reply, err
		}
		return f(c, &body)
	})
}

// Done is a Serve whose answer is the status alone.
func Done(status int, f func(*Call) error) func(*Call) error {
	return func(c *Call) error {
		if err := f(c); err != nil {
			return err
		}
		CommonHeaders(c.W.Header())
		c.W.WriteHeader(status)
		return nil
	}
}
