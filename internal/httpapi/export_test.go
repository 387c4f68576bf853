package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"curt/internal/auth"
	"curt/internal/shorten"
)

// ParseDate and IfMatch are tested as the small languages that they are.
func ParseDate(s string) (time.Time, error) { return parseDate(s) }

func IfMatch(lines ...string) (shorten.Match, error) { return ifMatch(http.Header{"If-Match": lines}) }

// Route is what an operation says about who may use it.
type Route struct {
	Method, Path string
	Scope        auth.Scope
	Instead      auth.Scope
	Anonymous    bool
	Open, Owned  bool
	HasBody      bool
	Success      int // the last status below 300 that it describes: a create may also find a link, with 200
}

// Routes returns what every operation says.
func Routes() []Route {
	var routes []Route
	for _, op := range new(api).operations(describe(http.NewServeMux(), "").OpenAPI().Components.Schemas) {
		scopes := append(op.action.Scopes(), "", "")
		r := Route{Method: op.Method, Path: op.Path, Scope: scopes[0], Instead: scopes[1], Anonymous: op.anonymous, Open: op.open, Owned: op.owned, HasBody: op.RequestBody != nil}
		for status := range op.Responses {
			if n, err := strconv.Atoi(status); err == nil && n < 300 && n > r.Success {
				r.Success = n
			}
		}
		routes = append(routes, r)
	}
	return routes
}
