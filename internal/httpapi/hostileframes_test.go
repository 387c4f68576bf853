package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// badFrames are wrong before the body is read, or in their paths and queries.
func badFrames() []hostile {
	good := `{"long_url":"http://example.com"}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 1<<20)) // a bytes.Buffer takes everything
	_ = z.Close()
	media := func(types ...string) (headers []string) {
		for _, m := range types {
			headers = append(headers, "Content-Type: "+m)
		}
		return append(headers, "")
	}
	return []hostile{
		{name: "no media type", headers: []string{""}, body: good, want: 415},
		{name: "form", headers: media("application/x-www-form-urlencoded"), body: good, want: 415},
		{name: "plain text", headers: media("text/plain"), body: good, want: 415},
		{name: "multipart", headers: media("multipart/form-data; boundary=x"), body: good, want: 415},
		{name: "text JSON", headers: media("text/json"), body: good, want: 415},
		{name: "broken media type", headers: media("application/json;;;="), body: good, want: 415},
		{name: "two media types", headers: media("application/json", "text/plain"), body: good, want: 415},
		{name: "list of media types", headers: media("text/plain, application/json"), body: good, want: 415},
		{name: "another charset", headers: media("application/json; charset=utf-16"), body: good, want: 415},
		{name: "merge patch is for changes", headers: media("application/merge-patch+json"), body: good, want: 415},
		{name: "gzip bomb", headers: []string{"Content-Encoding: gzip"}, body: zipped.String(), want: 415},
		{name: "unknown coding", headers: []string{"Content-Encoding: zstd"}, body: good, want: 415},
		{name: "body too large", body: `{"title":"` + strings.Repeat("a", 70<<10) + `"}`, want: 413},
		{name: "white space too large", body: strings.Repeat(" ", 70<<10) + good, want: 413},
		{name: "chunked body too large", headers: []string{"Transfer-Encoding: chunked"}, body: fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", 70<<10, strings.Repeat(" ", 70<<10)), want: 413},

		{name: "wrong key", headers: []string{"Authorization: Bearer nobody"}, body: good, want: 401},
		{name: "foreign origin", headers: []string{"Origin: https://evil.example"}, body: good, want: 403},
		{name: "cross-site fetch", headers: []string{"Sec-Fetch-Site: cross-site"}, body: good, want: 403},
		{name: "cross-site delete", method: "DELETE", path: collection + "/victim", headers: []string{"Sec-Fetch-Site: cross-site"}, want: 403},

		{name: "put", method: "PUT", body: good, want: 405},
		{name: "options", method: "OPTIONS", want: 405},
		{name: "trace", method: "TRACE", want: 405},
		{name: "invented method", method: "SHORTEN", want: 405},
		{name: "post to a link", path: collection + "/victim", body: good, want: 405},
		{name: "delete the document", method: "DELETE", path: "/api/openapi.json", want: 405},
		{name: "no such path", method: "GET", path: "/api/v1/nothing", want: 404},
		{name: "no such version", path: "/api/v9/links", body: good, want: 404},
		{name: "slash at the end", method: "GET", path: collection + "/", want: 404},
		{name: "two slashes", path: "/api//v1/links", body: good, want: 404},
		{name: "dots", method: "GET", path: "/api/v1/../v1/links", want: 404},
		{name: "escaped dots", method: "GET", path: "/api/v1/%2e%2e/links", want: 404},
		{name: "escaped slash", method: "GET", path: collection + "/a%2fb", want: 404},
		{name: "code with NUL", method: "GET", path: collection + "/abc%00", want: 404},
		{name: "code with line end", method: "GET", path: collection + "/abc%0d%0aX:%20y", want: 404},
		{name: "code too long", method: "GET", path: collection + "/" + strings.Repeat("a", 65), want: 404},
		{name: "code of broken UTF-8", method: "GET", path: collection + "/%ff%fe", want: 404},
		{name: "broken escape", method: "GET", path: collection + "/%zz", want: 400},
		{name: "unknown link", method: "GET", path: collection + "/nothing", want: 404},
		{name: "link of another domain", method: "GET", path: collection + "/victim?domain=go.example", want: 404},
		{name: "link of a strange domain", method: "GET", path: collection + "/victim?domain=evil.example", want: 404},

		{name: "limit of none", method: "GET", path: collection + "?limit=0", want: 400, field: "limit"},
		{name: "limit of too many", method: "GET", path: collection + "?limit=101", want: 400, field: "limit"},
		{name: "limit of words", method: "GET", path: collection + "?limit=ten", want: 400, field: "limit"},
		{name: "limit of ages", method: "GET", path: collection + "?limit=99999999999999999999", want: 400, field: "limit"},
		{name: "limit twice", method: "GET", path: collection + "?limit=1&limit=2", want: 400, field: "limit"},
		{name: "limit empty", method: "GET", path: collection + "?limit=", want: 400, field: "limit"},
		{name: "forged cursor", method: "GET", path: collection + "?cursor=AAAAAAAAAAAAAAAAAAAAAAAAAAAA", want: 400, field: "cursor"},
		{name: "cursor of noise", method: "GET", path: collection + "?cursor=%00%ff", want: 400, field: "cursor"},
		{name: "huge cursor", method: "GET", path: collection + "?cursor=" + strings.Repeat("A", 5000), want: 400, field: "cursor"},
		{name: "injected sort", method: "GET", path: collection + "?sort=id;drop%20table", want: 400},
		{name: "unknown parameter", method: "GET", path: collection + "?workspace_id=acme", want: 400, field: "workspace_id"},
		{name: "deleted status", method: "GET", path: collection + "?status=deleted", want: 400, field: "status"},
		{name: "status in another case", method: "GET", path: collection + "?status=Active", want: 400, field: "status"},
		{name: "list of a strange domain", method: "GET", path: collection + "?domain=evil.example", want: 400, field: "domain"},
		{name: "semicolons", method: "GET", path: collection + "?limit=1;status=active", want: 400},
		{name: "broken query escape", method: "GET", path: collection + "?limit=%zz", want: 400},

		{name: "interval of years", method: "GET", path: collection + "/victim/stats?interval=year", want: 400, field: "interval"},
		{name: "from no date", method: "GET", path: collection + "/victim/stats?from=yesterday", want: 400, field: "from"},
		{name: "from after to", method: "GET", path: collection + "/victim/stats?from=2026-06-02T00:00Z&to=2026-06-01T00:00Z", want: 400, field: "from"},
		{name: "too many points", method: "GET", path: collection + "/victim/stats?interval=minute&from=2000-01-01T00:00Z", want: 400, field: "interval"},
		{name: "from the beginning of time", method: "GET", path: collection + "/victim/stats?from=0001-01-01T00:00Z", want: 400, field: "from"},
		{name: "statistics of nothing", method: "GET", path: collection + "/nothing/stats", want: 404},

		{name: "If-Match of words", method: "PATCH", path: collection + "/victim", headers: []string{"If-Match: three"}, body: "{}", want: 400, field: "If-Match"},
		{name: "If-Match is empty", method: "PATCH", path: collection + "/victim", headers: []string{"If-Match: "}, body: "{}", want: 400, field: "If-Match"},
		{name: "If-Match half quoted", method: "DELETE", path: collection + "/victim", headers: []string{`If-Match: "1`}, want: 400, field: "If-Match"},
		{name: "If-Match of another version", method: "DELETE", path: collection + "/victim", headers: []string{`If-Match: "2"`}, want: 412},
		{name: "If-Match weak", method: "DELETE", path: collection + "/victim", headers: []string{`If-Match: W/"1"`}, want: 412},
		{name: "If-Match padded", method: "DELETE", path: collection + "/victim", headers: []string{`If-Match: "01"`}, want: 412},
		{name: "If-Match of ages", method: "DELETE", path: collection + "/victim", headers: []string{`If-Match: "99999999999999999999999"`}, want: 412},
	}
}

// badChanges turns what is wrong for both into changes of a link, and adds what
// is wrong for a change alone.
func badChanges() (all []hostile) {
	for _, h := range slices.Concat(badBodies(), badTexts(), badTypes()) {
		if h.create {
			continue
		}
		h.name, h.method, h.path = "change: "+h.name, http.MethodPatch, collection+"/victim"
		all = append(all, h)
	}
	change := func(name, body, field string) hostile {
		return hostile{name: name, method: http.MethodPatch, path: collection + "/victim", body: body, want: 400, field: field}
	}
	return append(all,
		change("the alias never changes", `{"custom_alias":"other"}`, "custom_alias"),
		change("the domain never changes", `{"domain":"go.example"}`, "domain"),
		change("deleting has its own method", `{"status":"deleted"}`, "status"),
		change("status is null", `{"status":null}`, "status"),
		change("status is a number", `{"status":1}`, "status"),
	)
}
