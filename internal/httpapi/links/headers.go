package links

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/httpapi/kernel"
	"curt/internal/idempotency"
	"curt/internal/link"
	"curt/internal/shorten"
)

// idempotencyHeader lets a client send a create again without making a second link
// (draft-ietf-httpapi-idempotency-key-header).
const idempotencyHeader = "Idempotency-Key"

// idempotencyKey returns the key that the client chose; "" = none was sent. The draft
// wants a quoted string (RFC 8941, section 3.3.3); most clients send it bare. Both
// spellings of a key are the same key. A bare one holds none of the characters that
// would let it be read as a list or with parameters.
func idempotencyKey(h http.Header) (string, error) {
	lines := h[idempotencyHeader]
	switch {
	case len(lines) == 0:
		return "", nil
	case len(lines) > 1:
		return "", kernel.BadField(idempotencyHeader, "duplicate header")
	}
	key, ok := lines[0], true
	if strings.HasPrefix(key, `"`) {
		key, ok = quotedString(key)
	} else {
		ok = !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`",;\`, r) })
	}
	if !ok || key == "" || len(key) > idempotency.MaxKey {
		return "", kernel.BadField(idempotencyHeader, `expected 1 to 255 printable ASCII characters, in quotes or without spaces and " , ; \`)
	}
	return key, nil
}

// quotedString reads an RFC 8941 string that is the whole text.
func quotedString(text string) (string, bool) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), i == len(text)-1
		case c < ' ' || c > '~':
			return "", false
		case c == '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", false
			}
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// idempotencyKeys is what holds of the key of every operation that takes one.
const idempotencyKeys = "1 to 255 printable ASCII characters, as a quoted string or bare. Scoped to the API key. A different " +
	"request under the same key returns 422. A refused request leaves the key unused."

func idempotencyParam(about string) *huma.Param {
	return &huma.Param{
		Name: idempotencyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString}, Description: about,
	}
}

// OnceParam is the key of a request for one link.
func OnceParam() *huma.Param {
	return idempotencyParam("Makes a retry safe, without a second link: for 24 hours every request with this key " +
		"and the same content is answered with the link that the first one created, in its original state or, if it was " +
		"changed, in its current state. Returns 409 if the first request is still in flight after 5 s, or if the link was deleted " +
		"since. " + idempotencyKeys)
}

// deduplicated is the header of a create that was answered with an existing link.
const deduplicated = "Curt-Deduplicated"

// CreateAnswers describes what every spelling of a create answers with a schema.
func CreateAnswers(d kernel.Describer, schema *huma.Schema) map[string]*huma.Response {
	content := map[string]*huma.MediaType{"application/json": {Schema: schema}}
	answers := d.Answers(201, "The link was created.", nil, createdHeaders(), 408, 409, 413, 415, 422, 429, 507)
	answers["201"].Content = content
	found := createdHeaders()
	found[deduplicated] = kernel.Header("true.")
	answers["200"] = &huma.Response{Description: "An existing link is returned because of dedupe.", Headers: found, Content: content}
	accepted := createdHeaders()
	delete(accepted, "ETag")
	answers["202"] = &huma.Response{Description: "The link was accepted and is not written yet (CURT_WRITES=queued): its state is pending.", Headers: accepted, Content: content}
	return answers
}

// preferParam lets a client wait until a link is written (RFC 7240).
func preferParam() *huma.Param {
	return &huma.Param{
		Name: "Prefer", In: "header", Schema: &huma.Schema{Type: huma.TypeString},
		Description: "wait or wait=SECONDS: answer 201 once the link is written, or 202 after at most 10 s, on a server that queues links (CURT_WRITES=queued).",
	}
}

// waitLimit is how long a create waits until its link is written, at most.
const waitLimit = 10 * time.Second

// prefersWait returns how long a client wants to wait; 0 = not at all. Other preferences are none of ours, and one that is malformed
// is ignored (RFC 7240, section 2).
func prefersWait(h http.Header) time.Duration {
	for _, line := range h["Prefer"] {
		for one := range strings.SplitSeq(line, ",") {
			one, _, _ = strings.Cut(one, ";")
			name, value, given := strings.Cut(one, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			value = strings.Trim(value, ` "\t`)
			if !given || value == "" {
				return waitLimit
			}
			if seconds, err := strconv.ParseUint(value, 10, 16); err == nil || errors.Is(err, strconv.ErrRange) {
				return min(time.Duration(seconds)*time.Second, waitLimit)
			}
		}
	}
	return 0
}

// etag is the entity tag of a link: its version.
func etag(v link.Version) string { return `"` + strconv.FormatUint(uint64(v), 10) + `"` }

// ifMatch reads the If-Match header (RFC 9110, section 13.1.1). Without it any
// version will do. A weak tag never matches, as the strong comparison wants; a
// tag that we never made does not either, and text that is no tag is refused.
func ifMatch(h http.Header) (shorten.Match, error) {
	lines := h["If-Match"]
	if len(lines) == 0 {
		return shorten.Match{}, nil
	}
	match := shorten.Match{Only: true}
	rest := strings.Join(lines, ",")
	if strings.TrimSpace(rest) == "*" {
		return shorten.Match{}, nil
	}
	for tag := range strings.SplitSeq(rest, ",") {
		tag = strings.Trim(tag, " \t")
		weak := strings.HasPrefix(tag, "W/")
		text := strings.TrimPrefix(tag, "W/")
		if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' || strings.Contains(text[1:len(text)-1], `"`) {
			return shorten.Match{}, kernel.BadField("If-Match", `expected "*" or quoted versions, like "3"`)
		}
		version, err := strconv.ParseUint(text[1:len(text)-1], 10, 64)
		if err == nil && !weak && etag(link.Version(version)) == text {
			match.Versions = append(match.Versions, link.Version(version))
		}
	}
	return match, nil
}
