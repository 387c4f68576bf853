package redirect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"curt/internal/cache"
	"curt/internal/link"
)

// Wire says how AppendAnswer writes.
type Wire struct {
	Date  []byte // the value of Date
	Head  bool   // the method was HEAD: no body
	Close bool   // Connection: close
}

// AppendAnswer appends the whole HTTP/1.1 answer to dst: the fields that ServeHTTP
// sets, Date, and the body.
func (h *Handler) AppendAnswer(dst []byte, out Outcome, w Wire) []byte {
	header := make(http.Header, 8)
	h.values.fill(header, out)
	var b body
	if out.Problem != NoProblem {
		b = h.bodies.of(out)
		header["Content-Length"] = b.length
	}
	dst = appendStatus(dst, out.Status)
	for _, name := range [...]string{
		"Allow", "Cache-Control", "Content-Length", "Content-Security-Policy", "Content-Type", "Location",
		"Referrer-Policy", "Retry-After", transportField, "Vary", "X-Content-Type-Options", "X-Robots-Tag",
	} {
		if v := header[name]; v != nil {
			dst = appendField(dst, name, v[0])
			delete(header, name)
		}
	}
	for name, v := range header { // none today; a field added to fill is never lost
		dst = appendField(dst, name, v[0])
	}
	dst = append(append(append(dst, "Date: "...), w.Date...), "\r\n"...)
	if w.Close {
		dst = append(dst, "Connection: close\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	if w.Head {
		return dst
	}
	return append(dst, b.bytes...)
}

func appendStatus(dst []byte, status int) []byte {
	dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(status), 10)
	return append(append(append(dst, ' '), http.StatusText(status)...), "\r\n"...)
}

func appendField(dst []byte, name, value string) []byte {
	return append(append(append(append(dst, name...), ": "...), value...), "\r\n"...)
}

// NewPreparer returns what cache.Config.Prepare wants: the answer of a plain link,
// as the bytes before and after the value of Date. Heads are shared between links,
// so an entry pays for its Location only. A link that is not plain, or whose
// destination is not a safe Location, has no prepared answer.
//
// transport is that of HandlerConfig.
func NewPreparer(transport string) func(link.Key, link.Target) cache.Prepared {
	type kind struct {
		redirect link.Redirect
		cache    string
		noIndex  bool
	}
	heads := map[kind]string{}
	for _, r := range []link.Redirect{301, 302, 307, 308} {
		for _, c := range []string{revalidate, keepShort, keepPublic} {
			for _, n := range []bool{false, true} {
				b := appendField(appendStatus(nil, int(r)), "Cache-Control", c)
				b = appendField(b, "Content-Length", "0")
				if n {
					b = appendField(b, "X-Robots-Tag", "noindex")
				}
				if transport != "" {
					b = appendField(b, transportField, transport)
				}
				heads[kind{r, c, n}] = string(append(b, "Date: "...))
			}
		}
	}
	return func(_ link.Key, t link.Target) cache.Prepared {
		if !t.Plain() || t.Exhausted || !safeLocation(t.Destination) {
			return cache.Prepared{}
		}
		always := t
		always.Expires = 0
		head, ok := heads[kind{t.Redirect, cacheControl(always, time.Time{}), t.NoIndex}]
		if !ok {
			return cache.Prepared{}
		}
		return cache.Prepared{
			Head: head, Tail: "\r\nLocation: " + t.Destination + "\r\n\r\n",
			From: t.Starts, Until: prepareUntil(t.Expires),
		}
	}
}

// longestKeep is the longest max-age of an answer: so long before its expiry a
// link's answer begins to depend on the time.
const longestKeep = 90 * 1000

// prepareUntil returns when a prepared answer becomes invalid; 0 = never.
func prepareUntil(expires int64) int64 {
	if expires == 0 {
		return 0
	}
	return max(1, expires-longestKeep)
}

// values are header values that never change, created once: assigning them costs no
// allocation, as Header.Set would.
type values struct {
	cache                                  map[string][]string
	noIndex, accept, none, html, json, csp []string
	nosniff, noReferrer, allow             []string
	transport                              []string // nil = no header
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
	for _, c := range []string{noStore, revalidate, keepShort, keepPublic} {
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

// bodies are the answers that are no redirects, made once: only the warning page
// depends on the link. They hold nothing of a request.
type bodies struct {
	pages Pages
	json  [problems]body
	html  [problems]body
}

// body is bytes with their length as a header's value.
type body struct {
	bytes  []byte
	length []string
}

func newBody(b []byte) body {
	return body{bytes: b, length: []string{strconv.Itoa(len(b))}}
}

func newBodies(pages Pages) (*bodies, error) {
	b := &bodies{pages: pages}
	for p := NotFound; p < problems; p++ {
		d := p.describe()
		j, err := json.Marshal(struct {
			Type   string `json:"type"`
			Title  string `json:"title"`
			Status int    `json:"status"`
			Detail string `json:"detail"`
		}{p.Type(), d.title, d.status, d.detail})
		if err != nil {
			return nil, fmt.Errorf("redirect: write problem %s: %w", d.name, err)
		}
		b.json[p] = newBody(append(j, '\n'))
		if b.html[p], err = b.render(p, d.status, "", ""); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bodies) render(p Problem, status int, destination, onward string) (body, error) {
	made, err := b.pages.Page(p, status, destination, onward)
	if err != nil {
		return body{}, fmt.Errorf("redirect: render page %s: %w", p.Name(), err)
	}
	return newBody(made), nil
}

// of returns the body of a problem. A page that cannot be rendered
// falls back to the one without a destination.
func (b *bodies) of(out Outcome) body {
	switch {
	case !out.HTML:
		return b.json[out.Problem]
	case out.Destination == "":
		return b.html[out.Problem]
	}
	made, err := b.render(out.Problem, out.Status, out.Destination, out.Onward)
	if err != nil {
		return b.html[out.Problem]
	}
	return made
}

// wantsHTML reports whether Accept names text/html with a weight above 0. Wildcards
// do not count: browsers name it, and programs that take anything want JSON.
func wantsHTML(accept []string) bool {
	for _, line := range accept {
		for item := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.Trim(media, " \t"), "text/html") {
				return !refused(params)
			}
		}
	}
	return false
}

// refused reports whether the parameters have a weight of 0 (RFC 9110, 12.4.2).
func refused(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.Trim(param, " \t"), "=")
		if strings.EqualFold(name, "q") {
			return value != "" && strings.Trim(value, "0.") == ""
		}
	}
	return false
}
