package httpapi

import (
	"net/http"
	"strconv"

	"curt/internal/auth"
	"curt/internal/httpapi/apidocs"
	"curt/internal/httpapi/kernel"
	"curt/internal/review"
)

// Route is what an operation says about who may use it.
type Route struct {
	Method, Path string
	Scope        auth.Scope
	Instead      auth.Scope
	Anonymous    bool
	Open, Owned  bool
	HasBody      bool
	Success      int // the last status below 300 that it describes: a create may also find a link, with 200, or queue it, with 202
}

// Routes returns what every operation says.
func Routes() []Route {
	var routes []Route
	for _, op := range operations(&Config{Review: &review.Service{}}, kernel.Describer{Schemas: apidocs.Describe(http.NewServeMux(), "").OpenAPI().Components.Schemas}) {
		scopes := append(op.Action.Scopes(), "", "")
		r := Route{Method: op.Method, Path: op.Path, Scope: scopes[0], Instead: scopes[1], Anonymous: op.Anonymous, Open: op.Open, Owned: op.Owned, HasBody: op.RequestBody != nil}
		for status := range op.Responses {
			if n, err := strconv.Atoi(status); err == nil && n < 300 && n > r.Success && n != http.StatusPartialContent && (n != http.StatusAccepted || op.Responses["201"] == nil) {
				r.Success = n
			}
		}
		routes = append(routes, r)
	}
	return routes
}
