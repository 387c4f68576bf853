package redirect

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"curt/internal/cache"
	"curt/internal/link"
)

// The express lane writes its answers itself. What follows is how it asks this
// package for the same decision and the same header fields as ServeHTTP gives.

// Place is what a Host header stands for: a domain, or nothing that is served.
type Place struct {
	domain domain
	known  bool // the Host is a configured one
	served bool
}

// Domain returns the domain, for look-ups.
func (p Place) Domain() link.Domain { return p.domain.name }

// Bytes returns the domain, for clicks; nobody may change them.
func (p Place) Bytes() []byte { return p.domain.bytes }

// Served reports whether links are answered there at all.
func (p Place) Served() bool { return p.served }

// Known reports whether the Host is a configured one. Whoever asks about a link
// under another tells it in Request.Stranger, and lets LeadsBack judge a prepared
// answer.
func (p Place) Known() bool { return p.known }

// At returns what a Host header stands for. It is a pure function of host.
func (h *Handler) At(host string) Place { return h.hosts.of(host) }

// Answer decides about a request for code, and logs why an answer is a 5xx.
func (h *Handler) Answer(ctx context.Context, p Place, code link.Code, q Request) Outcome {
	if !p.served {
		h.met[NotFound].Add(1)
		h.strange.Add(1)
		return Unknown(q)
	}
	out, err := h.resolver.Resolve(ctx, link.Key{Domain: p.domain.name, Code: code}, q, time.Now())
	if err != nil {
		h.report(ctx, out, err)
	}
	if out.Problem != NoProblem {
		h.met[out.Problem].Add(1)
	}
	return out
}

// Met returns how often p was the answer to a visit. What Meter then refused counts as
// what it was before.
func (h *Handler) Met(p Problem) uint64 { return h.met[p].Load() }

// Strange returns how many requests for links came to hosts that are not served.
func (h *Handler) Strange() uint64 { return h.strange.Load() }

// report logs why an answer is a 5xx. A store that is away shows in the metrics; a
// line for each of its visitors would fill the disk.
func (h *Handler) report(ctx context.Context, out Outcome, err error) {
	level := slog.LevelDebug
	if out.Status == http.StatusInternalServerError {
		level = slog.LevelError
	}
	h.log.LogAttrs(ctx, level, "redirect failed", slog.Int("status", out.Status), slog.Any("err", err))
}

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
// destination is no safe Location, has no prepared answer.
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
		for _, c := range []string{askAgain, keepShort, keepPublic} {
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
		if !t.Plain() || t.Exhausted || !safe(t.Destination) {
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

// prepareUntil returns when a prepared answer ends to hold; 0 = never.
func prepareUntil(expires int64) int64 {
	if expires == 0 {
		return 0
	}
	return max(1, expires-longestKeep)
}

// ViaQR reports whether a raw query has the trigger that a printed code carries.
func ViaQR[T ~string | ~[]byte](query T) bool {
	for from := 0; from <= len(query)-len(qrPair); {
		if string(query[from:from+len(qrPair)]) == qrPair &&
			(from+len(qrPair) == len(query) || query[from+len(qrPair)] == '&') {
			return true
		}
		for from < len(query) && query[from] != '&' {
			from++
		}
		from++
	}
	return false
}

// AnnouncesPrefetch reports whether the value of a Sec-Purpose, Purpose or X-Moz
// field says that nobody asked for this yet.
func AnnouncesPrefetch[T ~string | ~[]byte](value T) bool {
	end := 0
	for end < len(value) && value[end] != ';' {
		end++
	}
	start := 0
	for start < end && (value[start] == ' ' || value[start] == '\t') {
		start++
	}
	for end > start && (value[end-1] == ' ' || value[end-1] == '\t') {
		end--
	}
	for _, kind := range [...]string{"prefetch", "prerender", "preview"} {
		if equalFold(value[start:end], kind) {
			return true
		}
	}
	return false
}

// equalFold compares with a word of small letters.
func equalFold[T ~string | ~[]byte](s T, word string) bool {
	if len(s) != len(word) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}
