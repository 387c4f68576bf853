package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
)

// fields of a body: what they take, and whether only a create has them.
var bodyFields = []struct {
	name, takes string
	create      bool
}{
	{name: "long_url", takes: "url"},
	{name: "fallback_url", takes: "url"},
	{name: "title", takes: "text"},
	{name: "tags", takes: "texts"},
	{name: "starts_at", takes: "text"},
	{name: "expires_at", takes: "text"},
	{name: "expires_in", takes: "number"},
	{name: "max_clicks", takes: "number"},
	{name: "redirect_status", takes: "number"},
	{name: "forward_query", takes: "flag"},
	{name: "noindex", takes: "flag"},
	{name: "cacheable", takes: "flag"},
	{name: "custom_alias", takes: "text", create: true},
	{name: "domain", takes: "text", create: true},
	{name: "dedupe", takes: "flag", create: true},
}

// bodyWith is a create that is right but for one member.
func bodyWith(field, value string) string {
	if field == "long_url" {
		return `{"long_url":` + value + `}`
	}
	return `{"long_url":"http://example.com","` + field + `":` + value + `}`
}

// badTexts put bytes that no text may hold into every field that is one: invalid
// UTF-8, and CR, LF and NUL as they are and escaped. Escaped ones in a URL are for
// the URL rules, which take some of them as browsers do.
func badTexts() (all []hostile) {
	raw := map[string]string{"CR": "a\rb", "LF": "a\nb", "NUL": "a\x00b", "bad UTF-8": "a\xffb", "overlong UTF-8": "a\xc0\x8ab", "surrogate": "a\xed\xa0\x80b", "DEL escape": `a\x7fb`}
	escaped := map[string]string{"CR": `a\rb`, "LF": `a\nb`, "CR LF": `abc\r\nX-Injected: 1`, "NUL": `abc\u0000`, "NEL": `a\u0085b`, "line separator": `a\u2028b`, "half a pair": `a\ud800b`}
	for _, f := range bodyFields {
		before, behind := `"`, `"`
		switch f.takes {
		case "url":
			before = `"http://example.com/`
		case "texts":
			before, behind = `["`, `"]`
		case "number", "flag":
			continue
		}
		add := func(how, name, text string) {
			all = append(all, hostile{name: f.name + " with " + how + " " + name, body: bodyWith(f.name, before+text+behind), want: 400, create: f.create})
		}
		for name, text := range raw {
			add("raw", name, text)
		}
		if f.takes != "url" {
			for name, text := range escaped {
				add("escaped", name, text)
			}
		}
	}
	return all
}

// badTypes give every field each JSON value that is not its type, and numbers that
// are no whole ones.
func badTypes() (all []hostile) {
	values := map[string][]string{
		"text": {`1`, `true`, `[]`, `{}`, `["a"]`}, "url": {`1`, `false`, `[]`, `{}`, `["http://example.com"]`},
		"texts": {`1`, `true`, `"a"`, `{}`, `[1]`, `[["a"]]`, `[{}]`},
		"number": {
			`"1"`, `true`, `[]`, `{}`, `1.5`, `1e-2`, `1E400`, `-0.1`, `99999999999999999999`, `-9223372036854775809`, `1` + strings.Repeat("0", 5000),
			`01`, `+1`, `.5`, `1.`, `0x1`, `Infinity`, `NaN`, `-`, `-1`, `0`,
		},
		"flag": {`1`, `0`, `"true"`, `"false"`, `[]`, `{}`, `True`},
	}
	for _, f := range bodyFields {
		for _, v := range values[f.takes] {
			name := f.name + " is " + v[:min(len(v), 24)]
			all = append(all, hostile{name: name, body: bodyWith(f.name, v), want: 400, create: f.create})
		}
	}
	return all
}

// badLists are queries and conditions of the other methods of links.
func badLists() []hostile {
	victim := collection + "/victim"
	list := func(name, query, field string) hostile {
		return hostile{name: "list: " + name, method: http.MethodGet, path: collection + "?" + query, want: 400, field: field}
	}
	match := func(name, method string, want int, lines ...string) hostile {
		h := hostile{name: method + ": " + name, method: method, path: victim, want: want, headers: lines}
		if method == http.MethodPatch {
			h.body = "{}"
		}
		if want == 400 {
			h.field = "If-Match"
		}
		return h
	}
	all := []hostile{
		list("limit with a fraction", "limit=1.5", "limit"), list("negative limit", "limit=-1", "limit"), list("limit in hexadecimal", "limit=0x10", "limit"),
		list("limit with an exponent", "limit=1e1", "limit"), list("limit in full width", "limit=%EF%BC%91", "limit"), list("limit with NUL", "limit=1%00", "limit"),
		list("limit with a line end", "limit=1%0a", "limit"), list("limit with a space", "limit=+5", "limit"), list("limit with a sign", "limit=%2B5", "limit"), list("limit with a leading zero", "limit=05", "limit"), list("cursor twice", "cursor=a&cursor=b", "cursor"),
		list("cursor in another alphabet", "cursor="+strings.Repeat("%2B%2F", 20)+"%3D", "cursor"), list("cursor with a line end", "cursor=AAAA%0d%0aAAAA", "cursor"),
		list("cursor is empty", "cursor=", "cursor"), list("status twice", "status=active&status=active", "status"), list("status with NUL", "status=active%00", "status"),
		list("status with a line end", "status=active%0d%0a", "status"), list("domain with NUL", "domain=curt.test%00", "domain"), list("domain with a port", "domain=curt.test:1", "domain"),
		list("domain with a line end", "domain=curt.test%0d%0aX:1", "domain"), list("domain is long", "domain="+strings.Repeat("a", 4000), "domain"),
		list("domain of broken UTF-8", "domain=%ff", "domain"), list("name of broken UTF-8", "%ff=1", ""), list("name in another case", "Limit=1", "Limit"),
		list("name with NUL", "limit%00=1", ""), list("long name", strings.Repeat("n", 6000)+"=1", ""), list("array of limits", "limit[]=1", "limit[]"),
		list("no name", "=1", ""),
		{name: "get: unknown parameter", method: http.MethodGet, path: victim + "?fields=id", want: 400, field: "fields"},
		{name: "change: unknown parameter", method: http.MethodPatch, path: victim + "?force=1", body: "{}", want: 400, field: "force"},
		{name: "delete: unknown parameter", method: http.MethodDelete, path: victim + "?force=1", want: 400, field: "force"},
		{name: "delete: domain twice", method: http.MethodDelete, path: victim + "?domain=curt.test&domain=go.example", want: 400, field: "domain"},
		{name: "delete: another domain", method: http.MethodDelete, path: victim + "?domain=go.example", want: 404},
		{name: "delete: domain with NUL", method: http.MethodDelete, path: victim + "?domain=curt.test%00", want: 404},
		{name: "delete: code with a line end", method: http.MethodDelete, path: victim + "%0a", want: 404},
		{name: "delete: code in another case", method: http.MethodDelete, path: collection + "/Victim", want: 404},
		{name: "change: code too long", method: http.MethodPatch, path: collection + "/" + strings.Repeat("a", 4000), body: "{}", want: 404},
		{name: "change: no media type", method: http.MethodPatch, path: victim, headers: []string{""}, body: "{}", want: 415},
		{name: "change: JSON patch", method: http.MethodPatch, path: victim, headers: []string{"Content-Type: application/json-patch+json"}, body: "[]", want: 415},
		{name: "change: gzip", method: http.MethodPatch, path: victim, headers: []string{"Content-Encoding: gzip"}, body: "{}", want: 415},
		{name: "change: no body", method: http.MethodPatch, path: victim, headers: []string{"Content-Type: application/json"}, want: 400},
	}
	for _, method := range []string{http.MethodPatch, http.MethodDelete} {
		all = append(all,
			match("If-Match without quotes", method, 400, "If-Match: 1"), match("If-Match of a star and more", method, 400, `If-Match: *, "1"`),
			match("If-Match of a good and a bad tag", method, 400, `If-Match: "2", three`), match("If-Match on two lines, one bad", method, 400, `If-Match: "2"`, "If-Match: x"),
			match("If-Match of commas", method, 400, "If-Match: ,,"), match("If-Match of bytes", method, 400, "If-Match: \xff\xfe"), match("If-Match nested", method, 400, `If-Match: ""1""`),
			match("If-Match negative", method, 412, `If-Match: "-1"`), match("If-Match in hexadecimal", method, 412, `If-Match: "0x1"`),
			match("If-Match of nothing", method, 412, `If-Match: ""`), match("If-Match of 4000 tags", method, 412, "If-Match: "+strings.Repeat(`"7",`, 1000)+`"8"`),
		)
	}
	return all
}

// badSpellings send what is wrong at /api/v1/links to the other paths that make
// links, renamed where a path speaks camelCase, and add what is wrong there alone.
func badSpellings(creates []hostile) (all []hostile) {
	for _, path := range []string{"/api/v1/urls", "/shorten", "/v1/urls", "/v1/links"} {
		for _, h := range creates {
			if h.path != "" {
				continue
			}
			h.name, h.path = path+": "+h.name, path
			switch {
			case path == "/v1/links":
				h.body, h.field = inCamelCase(h.body), inCamelCase(h.field)
			case path == "/api/v1/urls" && strings.Contains(h.body, `"longUrl"`):
				h.field = "long_url" // the first name that is wrong in camelCase
			}
			if strings.Contains(h.body, `\u005f`) {
				h.field = "" // whether a name is unknown or there twice
			}
			all = append(all, h)
		}
		for _, h := range badFrames() {
			if h.path == "" && !slices.Contains([]string{"PUT", "TRACE"}, h.method) {
				h.name, h.path = path+": "+h.name, path
				all = append(all, h)
			}
		}
		all = append(all, badAlias(path)...)
	}
	return all
}

func inCamelCase(text string) string {
	return strings.NewReplacer("long_url", "longUrl", "custom_alias", "customAlias", "expires_at", "expiresAt").Replace(text)
}

// badAlias is what is wrong with the links below one of the other paths.
func badAlias(path string) []hostile {
	victim, stats := path+"/victim", path+"/victim/stats"
	all := []hostile{
		{method: "GET", path: path, want: 405},
		{method: "PATCH", path: path, body: "{}", want: 405},
		{method: "PUT", path: path, body: "{}", want: 405},
		{method: "GET", path: victim, want: 405},
		{method: "PATCH", path: victim, body: "{}", want: 405},
		{method: "POST", path: stats, body: "{}", want: 405},
		{method: "POST", path: path + "/", body: "{}", want: 404},
		{method: "POST", path: "/" + path, body: "{}", want: 404},
		{method: "POST", path: path + "//", body: "{}", want: 404},
		{method: "DELETE", path: path + "/../urls/victim", want: 404},
		{method: "DELETE", path: victim + "/", want: 404},
		{method: "DELETE", path: path + "/%zz", want: 400},
		{method: "DELETE", path: path + "/a%2fb", want: 404},
		{method: "DELETE", path: path + "/abc%00", want: 404},
		{method: "DELETE", path: path + "/abc%0d%0aX:%20y", want: 404},
		{method: "DELETE", path: path + "/%ff%fe", want: 404},
		{method: "DELETE", path: path + "/" + strings.Repeat("a", 65), want: 404},
		{method: "DELETE", path: path + "/nothing", want: 404},
		{method: "DELETE", path: victim + "?domain=evil.example", want: 404},
		{method: "DELETE", path: victim + "?domain=", want: 400, field: "domain"},
		{method: "DELETE", path: victim + "?force=1", want: 400, field: "force"},
		{method: "DELETE", path: victim, headers: []string{"If-Match: x"}, want: 400, field: "If-Match"},
		{method: "DELETE", path: victim, headers: []string{`If-Match: W/"1"`}, want: 412},
		{method: "DELETE", path: victim, headers: []string{"Authorization: Bearer nobody"}, want: 401},
		{method: "DELETE", path: victim, headers: []string{"Sec-Fetch-Site: cross-site"}, want: 403},
		{method: "GET", path: path + "/nothing/stats", want: 404},
		{method: "GET", path: path + "/%00/stats", want: 404},
		{method: "GET", path: stats + "/", want: 404},
		{method: "GET", path: stats + "?from=2026-01-01T00:00Z", want: 400, field: "from"},
		{method: "GET", path: stats + "?domain=go.example", want: 404},
		{method: "GET", path: stats + "?domain=a&domain=b", want: 400, field: "domain"},
		{method: "GET", path: stats + "?domain=%00", want: 404},
		{path: path + "?dry_run=1", body: `{"long_url":"http://example.com"}`, want: 400, field: "dry_run"},
	}
	for i := range all {
		all[i].name = all[i].method + " " + all[i].path
	}
	return all
}
