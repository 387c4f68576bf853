package http_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// marks are spellings of a line end and a header behind it that something on the way
// might turn into the real thing: as they are, escaped, outside ASCII with the right
// low byte, and behind bytes that some take for an end.
func marks() []string {
	const field = "X-Injected: 1"
	return []string{
		"\r\n" + field, "\n" + field, "\r" + field, "\r\n\r\n<script>" + field, "\x00\r\n" + field, "\x0b\x0c" + field,
		"%0d%0a" + field, "%0D%0A" + field, "%250d%250a" + field, "%0a" + field, "%00%0d%0a" + field, "%E5%98%8D%E5%98%8A" + field,
		"\u560d\u560a" + field, "\u010d\u010a" + field, "\u2028" + field, "\u0085" + field, `\r\n` + field, "\t\r\n\t" + field,
		"%u000d%u000a" + field, "&#13;&#10;" + field, "\r\nLocation: https://evil.example/", "\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n" + field,
	}
}

// ourFields are the header lines that curt writes, all of them.
func ourFields() []string {
	return []string{
		"Allow", "Cache-Control", "Connection", "Content-Length", "Content-Security-Policy", "Content-Type", "Date", "Etag", "Location",
		"Referrer-Policy", "Retry-After", "Transfer-Encoding", "Vary", "Www-Authenticate", "X-Content-Type-Options",
		"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Robots-Tag", "Curt-Deduplicated",
	}
}

// TestNothingSentBecomesAHeader sends every mark through every field that could
// reach a header, reads the answers byte by byte, and follows what was made.
func TestNothingSentBecomesAHeader(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"on", "off"} {
		t.Run("lane "+lane, func(t *testing.T) {
			t.Parallel()
			s := curttest.Start(t, curttest.Options{Env: []string{
				"CURT_LANE=" + lane, "CURT_BASE_URL=https://sho.rt", "CURT_DOMAINS=go.example", "CURT_TRUSTED_PROXIES=127.0.0.0/8",
			}})
			p := &prober{server: s}
			for i, mark := range marks() {
				p.bodies(t, i, mark)
				p.lines(t, mark)
			}
			if p.followed < 50 || p.answers < 1000 {
				t.Errorf("%d answers and %d redirects prove little", p.answers, p.followed)
			}
		})
	}
}

type prober struct {
	server            *curttest.Server
	answers, followed int
}

// bodies sends a mark in the fields of bodies. Whatever was made is followed.
func (p *prober) bodies(t *testing.T, i int, mark string) {
	t.Helper()
	paths := []struct{ path, names string }{
		{"/api/v1/links", "long_url custom_alias domain fallback_url expires_at starts_at title"},
		{"/api/v1/urls", "long_url custom_alias longUrl customAlias"},
		{"/shorten", "long_url custom_alias domain"},
		{"/v1/urls", "long_url custom_alias domain"},
		{"/v1/links", "longUrl customAlias"},
	}
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for n, path := range paths {
		long := "long_url"
		if path.path == "/v1/links" {
			long = "longUrl"
		}
		for name := range strings.FieldsSeq(path.names) {
			if strings.HasPrefix(name, "longU") || strings.HasPrefix(name, "customA") {
				long = "longUrl"
			}
			values := map[string]string{long: "https://example.com/"}
			switch name {
			case "long_url", "longUrl":
				values[name] = "https://example.com/a" + mark
			case "fallback_url":
				values[name], values["forward_query"] = "https://example.com/b"+mark, "true"
			case "domain":
				values[name] = "go.example" + mark
			case "expires_at", "starts_at":
				values[name] = later + mark
			default:
				values[name] = "abc" + mark
			}
			p.send(t, "POST", path.path, nil, object(values))
		}
		// A link by an alias that is right, so that it can be changed and followed.
		alias := fmt.Sprintf("mark-%d-%d", i, n)
		values := map[string]string{"long_url": "https://example.com/q", "custom_alias": alias, "fallback_url": "https://example.com/f?" + mark}
		p.send(t, "POST", "/api/v1/links", nil, object(values))
		p.send(t, "PATCH", "/api/v1/links/"+alias, nil, object(map[string]string{"long_url": "https://example.com/#" + mark}))
		p.send(t, "GET", "/"+alias, nil, "")
		p.send(t, "PATCH", "/api/v1/links/"+alias, nil, `{"status":"disabled"}`)
		p.send(t, "GET", "/"+alias, nil, "")
		p.send(t, "PATCH", "/api/v1/links/"+alias, nil, `{"status":"active","forward_query":true}`)
		p.send(t, "GET", "/"+alias+"?x="+strings.NewReplacer("\r", "", "\n", "", " ", "").Replace(mark), nil, "")
		p.send(t, "PATCH", "/api/v1/links/"+alias, nil, `{"starts_at":"`+later+`"}`)
		p.send(t, "GET", "/"+alias, nil, "")
	}
}

// lines sends a mark in the request line and in header lines, where those who write
// lines as they are would pass it on.
func (p *prober) lines(t *testing.T, mark string) {
	t.Helper()
	flat := strings.NewReplacer(" ", "%20", "\r", "%0d", "\n", "%0a", "\x00", "%00", "\t", "%09", "\x0b", "%0b", "\x0c", "%0c").Replace(mark)
	for _, target := range []string{
		"/" + flat, "/abc" + flat, "/api/v1/links/" + flat, "/api/v1/links?domain=" + flat, "/api/v1/links?" + flat + "=1", "/v1/urls/" + flat + "/stats",
		"/v1/links/" + flat, "/shorten/" + flat, "/healthz?" + flat, "/api/" + flat, "//" + flat, "/" + flat + "?qr=1", "/mark-0-0?" + flat,
	} {
		p.send(t, "GET", target, nil, "")
		p.send(t, "HEAD", target, nil, "")
		p.send(t, "DELETE", target, nil, "")
	}
	for _, name := range []string{
		"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-Ip", "Origin", "Accept", "If-Match", "Idempotency-Key",
		"User-Agent", "Referer", "Content-Type", "Authorization", "X-Request-Id", "Accept-Language", "Host-Override", "Retry-After",
	} {
		for _, line := range []string{name + ": " + mark, name + ": x" + flat, name + mark + ": x"} {
			p.send(t, "GET", "/mark-0-0", []string{line}, "")
			p.send(t, "POST", "/v1/urls", []string{line}, `{"long_url":"https://example.com/"}`)
		}
	}
}

// send sends one request on a connection of its own and reads all that comes back.
// A Location is asked for in turn, if it is one of our links'.
func (p *prober) send(t *testing.T, method, target string, lines []string, body string) {
	t.Helper()
	c := p.server.MustDial(t)
	defer c.Close()
	all := append([]string{"Content-Type: application/json", "Authorization: Bearer " + curttest.Key}, lines...)
	a, err := c.Do(method, target, all, body)
	if err != nil {
		t.Errorf("%s %q %q %q: %v", method, target, lines, body, err)
		return
	}
	p.answers++
	check(t, fmt.Sprintf("%s %q %q %q", method, target, lines, body), a)
	if a.Status/100 == 3 {
		p.followed++
	}
	if a.Status >= http.StatusInternalServerError {
		t.Errorf("%s %q %q %q: %d %s", method, target, lines, body, a.Status, a.Body)
	}
	if code := made(a); method == "POST" && code != "" {
		p.send(t, "GET", "/"+code, nil, "")
		p.send(t, "HEAD", "/"+code, nil, "")
	}
}

// made returns the code of the link that an answer says was made.
func made(a curttest.Answer) string {
	if a.Status != http.StatusCreated {
		return ""
	}
	path, _ := a.Get("Location")
	code, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/v1/links/"), "?")
	return code
}

// check holds that every line of the head is one that curt writes, once, in visible
// ASCII, and that no mark is anywhere but in a Location, where it is encoded.
func check(t *testing.T, request string, a curttest.Answer) {
	t.Helper()
	seen := map[string]bool{}
	for _, f := range a.Fields {
		name := http.CanonicalHeaderKey(f.Name)
		switch {
		case !slices.Contains(ourFields(), name):
			t.Errorf("%s: a line that is not ours: %q", request, f)
		case seen[name]:
			t.Errorf("%s: %s is there twice", request, f.Name)
		case strings.ContainsFunc(f.Value, func(r rune) bool { return r < ' ' || r > '~' }):
			t.Errorf("%s: bytes in %q", request, f)
		case name != "Location" && strings.Contains(f.Value, "njected"), strings.HasPrefix(f.Value, "https://evil.example"):
			t.Errorf("%s: a mark in %q", request, f)
		}
		seen[name] = true
	}
}

// object writes a JSON object of texts and flags, with the texts' bytes as they
// would be sent by somebody who escapes what JSON wants escaped.
func object(values map[string]string) string {
	var members []string
	for name, v := range values {
		if v == "true" {
			members = append(members, fmt.Sprintf("%q:true", name))
			continue
		}
		var b strings.Builder
		for _, r := range v {
			switch {
			case r < ' ' || r == '"' || r == '\\':
				fmt.Fprintf(&b, `\u%04x`, r)
			default:
				b.WriteRune(r)
			}
		}
		members = append(members, fmt.Sprintf("%q:\"%s\"", name, b.String()))
	}
	return "{" + strings.Join(members, ",") + "}"
}
