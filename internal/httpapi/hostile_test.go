package httpapi_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostile is one request that must be refused.
type hostile struct {
	name    string
	method  string // default POST
	path    string // default the collection of links
	headers []string
	body    string
	want    int
	field   string // that the problem must blame, if set
}

const collection = "/api/v1/links"

// badBodies are bodies that are wrong for a create and, where they set fields, for
// a change too.
func badBodies() []hostile {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	long := strings.Repeat("a", 9000)
	url := func(raw string) string { return fmt.Sprintf(`{"long_url":%q}`, raw) }
	with := func(member string) string { return `{"long_url":"http://example.com",` + member + `}` }
	return []hostile{
		{name: "empty body", body: " ", want: 400},
		{name: "null", body: "null", want: 400},
		{name: "array", body: "[]", want: 400},
		{name: "string", body: `"x"`, want: 400},
		{name: "number", body: "1", want: 400},
		{name: "not JSON", body: "long_url=http://example.com", want: 400},
		{name: "half an object", body: `{"long_url":"http://example.com"`, want: 400},
		{name: "trailing comma", body: `{"long_url":"http://example.com",}`, want: 400},
		{name: "trailing object", body: url("http://example.com") + "{}", want: 400},
		{name: "trailing text", body: url("http://example.com") + "x", want: 400},
		{name: "trailing NUL", body: url("http://example.com") + "\x00", want: 400},
		{name: "comment", body: `{/**/"long_url":"http://example.com"}`, want: 400},
		{name: "single quotes", body: `{'long_url':'http://example.com'}`, want: 400},
		{name: "byte order mark", body: "\xef\xbb\xbf" + url("http://example.com"), want: 400},
		{name: "UTF-16", body: "\xff\xfe{\x00}\x00", want: 400},
		{name: "duplicate key", body: with(`"long_url":"http://evil.example"`), want: 400, field: "long_url"},
		{name: "duplicate key by escape", body: with(`"long\u005furl":"http://evil.example"`), want: 400, field: "long_url"},
		{name: "duplicate unknown key", body: `{"x":1,"x":2}`, want: 400, field: "x"},
		{name: "unknown key", body: with(`"longUrl":"http://example.com"`), want: 400, field: "longUrl"},
		{name: "key in another case", body: `{"Long_URL":"http://example.com"}`, want: 400, field: "Long_URL"},
		{name: "prototype key", body: with(`"__proto__":{}`), want: 400, field: "__proto__"},
		{name: "read-only key", body: with(`"id":"x"`), want: 400, field: "id"},
		{name: "safety is not the owner's", body: with(`"safety":"clean"`), want: 400, field: "safety"},
		{name: "clicks are not the owner's", body: with(`"clicks":5}`), want: 400, field: "clicks"},
		{name: "long key", body: `{"` + long + `":1}`, want: 400},
		{name: "key of broken UTF-8", body: "{\"\xff\":1}", want: 400},
		{name: "deep array", body: deep, want: 400},
		{name: "deep value", body: with(`"title":` + deep), want: 400, field: "title"},
		{name: "deep tags", body: with(`"tags":` + deep), want: 400},
		{name: "deep object", body: strings.Repeat(`{"long_url":`, 5000), want: 400},
		{name: "invalid UTF-8 value", body: "{\"long_url\":\"http://example.com/\xff\"}", want: 400},
		{name: "lone surrogate", body: `{"long_url":"http://example.com/\ud800"}`, want: 400},
		{name: "raw line end in a string", body: "{\"long_url\":\"http://exam\nple.com\"}", want: 400},
		{name: "bad escape", body: `{"long_url":"http://example.com/\x41"}`, want: 400},

		{name: "URL is a number", body: `{"long_url":1}`, want: 400, field: "long_url"},
		{name: "URL is null", body: `{"long_url":null}`, want: 400, field: "long_url"},
		{name: "URL is an object", body: `{"long_url":{"href":"http://example.com"}}`, want: 400, field: "long_url"},
		{name: "URL is an array", body: `{"long_url":["http://example.com"]}`, want: 400, field: "long_url"},
		{name: "URL is empty", body: url(""), want: 400, field: "long_url"},
		{name: "URL without scheme", body: url("example.com"), want: 400, field: "long_url"},
		{name: "javascript", body: url("javascript:alert(1)"), want: 400, field: "long_url"},
		{name: "javascript with a tab", body: `{"long_url":"java\tscript:alert(1)"}`, want: 400, field: "long_url"},
		{name: "javascript behind a control", body: `{"long_url":"\u0001javascript:alert(1)"}`, want: 400, field: "long_url"},
		{name: "data", body: url("data:text/html,<script>"), want: 400, field: "long_url"},
		{name: "file", body: url("file:///etc/passwd"), want: 400, field: "long_url"},
		{name: "ftp", body: url("ftp://example.com"), want: 400, field: "long_url"},
		{name: "credentials", body: url("http://good.example@evil.example/"), want: 400, field: "long_url"},
		{name: "no host", body: url("http://"), want: 400, field: "long_url"},
		{name: "NUL in host", body: `{"long_url":"http://exa\u0000mple.com"}`, want: 400, field: "long_url"},
		{name: "bad port", body: url("http://example.com:99999"), want: 400, field: "long_url"},
		{name: "own host", body: url("https://curt.test/x"), want: 400, field: "long_url"},
		{name: "own host disguised", body: url("HTTP://CURT%2Etest./x"), want: 400, field: "long_url"},
		{name: "own further host", body: url("http://go.example:81/x"), want: 400, field: "long_url"},
		{name: "URL too long", body: url("http://example.com/" + long), want: 400, field: "long_url"},

		{name: "fallback javascript", body: with(`"fallback_url":"javascript:1"`), want: 400, field: "fallback_url"},
		{name: "fallback empty", body: with(`"fallback_url":""`), want: 400, field: "fallback_url"},
		{name: "fallback on own host", body: with(`"fallback_url":"http://curt.test"`), want: 400, field: "fallback_url"},

		{name: "date in the past", body: with(`"expires_at":"2026-06-01T11:59:59Z"`), want: 400, field: "expires_at"},
		{name: "date is now", body: with(`"expires_at":"2026-06-01T12:00:00Z"`), want: 400, field: "expires_at"},
		{name: "date without offset", body: with(`"expires_at":"2027-01-01T00:00:00"`), want: 400, field: "expires_at"},
		{name: "date without time", body: with(`"expires_at":"2027-01-01"`), want: 400, field: "expires_at"},
		{name: "date as number", body: with(`"expires_at":1800000000`), want: 400, field: "expires_at"},
		{name: "date is empty", body: with(`"expires_at":""`), want: 400, field: "expires_at"},
		{name: "date with a comma", body: with(`"expires_at":"2027-01-01T00:00:00,5Z"`), want: 400, field: "expires_at"},
		{name: "month 13", body: with(`"expires_at":"2027-13-01T00:00:00Z"`), want: 400, field: "expires_at"},
		{name: "30 February", body: with(`"expires_at":"2027-02-30T00:00:00Z"`), want: 400, field: "expires_at"},
		{name: "hour 24", body: with(`"expires_at":"2027-01-01T24:00:00Z"`), want: 400, field: "expires_at"},
		{name: "leap second", body: with(`"expires_at":"2027-01-01T23:59:60Z"`), want: 400, field: "expires_at"},
		{name: "year 10000", body: with(`"expires_at":"10000-01-01T00:00:00Z"`), want: 400, field: "expires_at"},
		{name: "huge fraction", body: with(`"expires_at":"2027-01-01T00:00:00.` + long + `Z"`), want: 400, field: "expires_at"},
		{name: "date with a line end", body: with(`"expires_at":"2027-01-01T00:00:00Z\n"`), want: 400, field: "expires_at"},
		{name: "both expiries", body: with(`"expires_at":"2027-01-01T00:00:00Z","expires_in":60`), want: 400, field: "expires_in"},
		{name: "expires in nothing", body: with(`"expires_in":0`), want: 400, field: "expires_in"},
		{name: "expires in the past", body: with(`"expires_in":-1`), want: 400, field: "expires_in"},
		{name: "expires in a fraction", body: with(`"expires_in":1.5`), want: 400, field: "expires_in"},
		{name: "expires in a string", body: with(`"expires_in":"60"`), want: 400, field: "expires_in"},
		{name: "expires in a small exponent", body: with(`"expires_in":1e-2`), want: 400, field: "expires_in"},
		{name: "expires after ages", body: with(`"expires_in":315619201`), want: 400, field: "expires_in"},
		{name: "huge number", body: with(`"expires_in":1` + strings.Repeat("0", 400)), want: 400, field: "expires_in"},
		{name: "number beyond int64", body: with(`"expires_in":9223372036854775808`), want: 400, field: "expires_in"},
		{name: "huge exponent", body: with(`"expires_in":1e99999`), want: 400, field: "expires_in"},
		{name: "NaN", body: with(`"expires_in":NaN`), want: 400, field: "expires_in"},
		{name: "leading zero", body: with(`"expires_in":060`), want: 400},
		{name: "hexadecimal", body: with(`"expires_in":0x10`), want: 400},
		{name: "starts in no year", body: with(`"starts_at":"0000-01-01T00:00:00Z"`), want: 400, field: "starts_at"},
		{name: "starts after the end", body: with(`"starts_at":"2027-01-02T00:00:00Z","expires_at":"2027-01-01T00:00:00Z"`), want: 400, field: "starts_at"},

		{name: "status 200", body: with(`"redirect_status":200`), want: 400, field: "redirect_status"},
		{name: "status as string", body: with(`"redirect_status":"302"`), want: 400, field: "redirect_status"},
		{name: "status wraps around", body: with(`"redirect_status":65838`), want: 400, field: "redirect_status"},
		{name: "title too long", body: with(`"title":"` + long + `"`), want: 400, field: "title"},
		{name: "title with CR LF", body: with(`"title":"a\r\nSet-Cookie: x=1"`), want: 400, field: "title"},
		{name: "title with NUL", body: with(`"title":"\u0000"`), want: 400, field: "title"},
		{name: "title is an array", body: with(`"title":["a"]`), want: 400, field: "title"},
		{name: "tags are a string", body: with(`"tags":"a,b"`), want: 400, field: "tags"},
		{name: "tags hold null", body: with(`"tags":[null]`), want: 400, field: "tags"},
		{name: "tags hold numbers", body: with(`"tags":[1]`), want: 400},
		{name: "a tag is empty", body: with(`"tags":[""]`), want: 400, field: "tags"},
		{name: "a tag with NUL", body: with(`"tags":["a\u0000"]`), want: 400, field: "tags"},
		{name: "a tag is too long", body: with(`"tags":["` + long + `"]`), want: 400, field: "tags"},
		{name: "too many tags", body: with(`"tags":[` + strings.Repeat(`"a",`, 40) + `"b"]`), want: 400, field: "tags"},
		{name: "a tag twice", body: with(`"tags":["a","a"]`), want: 400, field: "tags"},
		{name: "no clicks", body: with(`"max_clicks":0`), want: 400, field: "max_clicks"},
		{name: "fewer than no clicks", body: with(`"max_clicks":-5`), want: 400, field: "max_clicks"},
		{name: "too many clicks", body: with(`"max_clicks":9007199254740992`), want: 400, field: "max_clicks"},
		{name: "true as a string", body: with(`"noindex":"true"`), want: 400, field: "noindex"},
		{name: "true as a number", body: with(`"forward_query":1`), want: 400, field: "forward_query"},
		{name: "cacheable and counted", body: with(`"cacheable":true,"max_clicks":5`), want: 400, field: "cacheable"},
	}
}

// badCreates are wrong for a create alone.
func badCreates() []hostile {
	with := func(member string) string { return `{"long_url":"http://example.com",` + member + `}` }
	alias := func(a string) string { return with(fmt.Sprintf(`"custom_alias":%q`, a)) }
	return []hostile{
		{name: "no URL", body: "{}", want: 400, field: "long_url"},
		{name: "alias too short", body: alias("ab"), want: 400, field: "custom_alias"},
		{name: "alias too long", body: alias(strings.Repeat("a", 65)), want: 400, field: "custom_alias"},
		{name: "alias is empty", body: alias(""), want: 400, field: "custom_alias"},
		{name: "alias with slash", body: alias("a/../b"), want: 400, field: "custom_alias"},
		{name: "alias with dots", body: alias("..."), want: 400, field: "custom_alias"},
		{name: "alias with space", body: alias("a b c"), want: 400, field: "custom_alias"},
		{name: "alias with percent", body: alias("a%2fb"), want: 400, field: "custom_alias"},
		{name: "alias with NUL", body: with(`"custom_alias":"abc\u0000"`), want: 400, field: "custom_alias"},
		{name: "alias with CR LF", body: with(`"custom_alias":"abc\r\nX: y"`), want: 400, field: "custom_alias"},
		{name: "alias in Cyrillic", body: alias("аррӏе"), want: 400, field: "custom_alias"},
		{name: "alias is a number", body: with(`"custom_alias":1234`), want: 400, field: "custom_alias"},
		{name: "reserved alias", body: alias("api"), want: 409},
		{name: "reserved alias in another case", body: alias("Healthz"), want: 409},
		{name: "unknown domain", body: with(`"domain":"evil.example"`), want: 400, field: "domain"},
		{name: "domain with CR LF", body: with(`"domain":"curt.test\r\n"`), want: 400, field: "domain"},
		{name: "domain is a number", body: with(`"domain":7`), want: 400, field: "domain"},
		{name: "status is for changes", body: with(`"status":"disabled"`), want: 400, field: "status"},
		{name: "query on a create", path: collection + "?dry_run=1", body: with(`"title":"x"`), want: 400, field: "dry_run"},
	}
}

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
	for _, h := range badBodies() {
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

func TestHostileRequestsAreRefused(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com/victim","custom_alias":"victim"}`)
	before := s.do(t, "admin", http.MethodGet, collection+"/victim", "").body
	server := httptest.NewServer(s)
	defer server.Close()

	all := slices.Concat(badBodies(), badCreates(), badFrames(), badChanges(), badStatistics(), badClicks())
	if len(all) < 200 {
		t.Fatalf("only %d requests", len(all))
	}
	for _, h := range all {
		checkHostile(t, server.Listener.Addr().String(), h)
	}
	if n := s.stored(t); n != 1 {
		t.Errorf("%d links stored, want the victim alone", n)
	}
	if after := s.do(t, "admin", http.MethodGet, collection+"/victim", "").body; !bytes.Equal(before, after) {
		t.Errorf("the victim changed:\n%s\n%s", before, after)
	}
	if s.log.Len() != 0 {
		t.Errorf("refusing was logged as a failure:\n%s", s.log)
	}
}

// checkHostile sends h byte by byte as it stands and looks at every byte of the
// answer's head.
func checkHostile(t *testing.T, address string, h hostile) {
	t.Helper()
	res, head := exchange(t, address, h)
	if res == nil {
		return
	}
	defer func() { _ = res.Body.Close() }() // it is read to its end
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("%s: %v", h.name, err)
		return
	}
	if res.StatusCode != h.want {
		t.Errorf("%s: got %d, want %d: %s", h.name, res.StatusCode, h.want, text)
		return
	}
	for line := range strings.SplitSeq(strings.TrimSpace(head), "\r\n") {
		name, _, found := strings.Cut(line, ":")
		if found && !slices.Contains([]string{"Content-Type", "Content-Length", "Cache-Control", "X-Content-Type-Options", "Date", "Allow", "Www-Authenticate", "Connection"}, name) {
			t.Errorf("%s: the answer has a header line that is not ours: %q", h.name, line)
		}
	}
	if h.path == collection+"/%zz" { // net/http itself answers what is no request line
		return
	}
	p := answer{res, text}.problem(t)
	if h.field != "" && p["field"] != h.field {
		t.Errorf("%s: blames %v, want %s: %s", h.name, p["field"], h.field, text)
	}
	if res.StatusCode == http.StatusMethodNotAllowed && res.Header.Get("Allow") == "" {
		t.Errorf("%s: no Allow", h.name)
	}
	if res.StatusCode == http.StatusUnauthorized && res.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("%s: no WWW-Authenticate", h.name)
	}
}

// exchange returns the answer and its head as it came.
func exchange(t *testing.T, address string, h hostile) (*http.Response, string) {
	t.Helper()
	method, path := h.method, h.path
	if method == "" {
		method = http.MethodPost
	}
	if path == "" {
		path = collection
	}
	has := func(name string) bool {
		return slices.ContainsFunc(h.headers, func(line string) bool { return strings.HasPrefix(line, name) })
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: curt.test\r\nConnection: close\r\n", method, path)
	if !has("Authorization") {
		b.WriteString("Authorization: Bearer admin\r\n")
	}
	if h.body != "" && !has("Transfer-Encoding") {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(h.body))
	}
	if h.body != "" && !has("Content-Type") && !slices.Contains(h.headers, "") {
		b.WriteString("Content-Type: application/json\r\n")
	}
	for _, line := range h.headers {
		if line != "" {
			b.WriteString(line + "\r\n")
		}
	}
	b.WriteString("\r\n" + h.body)

	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // the answer was read
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	// A server that refuses a large body may close before all of it is sent.
	go func() { _, _ = io.WriteString(conn, b.String()) }()
	raw, err := io.ReadAll(conn)
	if err != nil && len(raw) == 0 {
		t.Errorf("%s: no answer: %v", h.name, err)
		return nil, ""
	}
	head, _, _ := strings.Cut(string(raw), "\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		t.Errorf("%s: %v: %q", h.name, err, raw)
		return nil, ""
	}
	return res, head
}
