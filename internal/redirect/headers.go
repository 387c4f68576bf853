package redirect

import (
	"net/http"
	"strconv"
)

// values are header values that never change, made once: assigning them costs no
// allocation, as Header.Set would.
type values struct {
	cache                                  map[string][]string
	noIndex, accept, none, html, json, csp []string
	nosniff, noReferrer, allow             []string
	transport                              []string // nil = nothing is said
}

// transportField is Strict-Transport-Security (RFC 6797).
const transportField = "Strict-Transport-Security"

func newValues(csp, transport string) values {
	v := values{
		cache:   map[string][]string{},
		noIndex: []string{"noindex"}, accept: []string{"Accept"}, none: []string{"0"},
		html: []string{"text/html; charset=utf-8"}, json: []string{"application/problem+json"}, csp: []string{csp},
		nosniff: []string{"nosniff"}, noReferrer: []string{"no-referrer"}, allow: []string{"GET, HEAD"},
	}
	for _, c := range []string{noStore, askAgain, keepShort, keepPublic} {
		v.cache[c] = []string{c}
	}
	if transport != "" {
		v.transport = []string{transport}
	}
	return v
}

// fill sets every header of the answer but Content-Length of a body.
func (v *values) fill(header http.Header, out Outcome) {
	cache, ok := v.cache[out.CacheControl]
	if !ok {
		cache = []string{out.CacheControl}
	}
	header["Cache-Control"] = cache
	if v.transport != nil {
		header[transportField] = v.transport
	}
	if out.NoIndex {
		header["X-Robots-Tag"] = v.noIndex
	}
	if out.Problem == NoProblem {
		header["Location"] = []string{out.Location}
		header["Content-Length"] = v.none
		return
	}
	header["Vary"] = v.accept
	header["X-Content-Type-Options"] = v.nosniff
	if out.HTML {
		header["Content-Type"] = v.html
		header["Content-Security-Policy"] = v.csp
		header["Referrer-Policy"] = v.noReferrer
	} else {
		header["Content-Type"] = v.json
	}
	if out.Allow != "" {
		header["Allow"] = v.allow
	}
	if out.RetryAfter > 0 {
		header["Retry-After"] = []string{strconv.Itoa(out.RetryAfter)}
	}
}
