package httpapi

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/idempotency"
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
		return "", badField(idempotencyHeader, "is sent twice")
	}
	key, ok := lines[0], true
	if strings.HasPrefix(key, `"`) {
		key, ok = quotedString(key)
	} else {
		ok = !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`",;\`, r) })
	}
	if !ok || key == "" || len(key) > idempotency.MaxKey {
		return "", badField(idempotencyHeader, `want 1 to 255 printable ASCII characters, in quotes or without spaces and " , ; \`)
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
const idempotencyKeys = "1 to 255 printable ASCII characters, as a quoted string or bare. Keys belong to the API key. Another " +
	"content under the key is 422. A request that was refused leaves the key free."

func idempotencyParam(about string) *huma.Param {
	return &huma.Param{
		Name: idempotencyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString}, Description: about,
	}
}

// onceParam is the key of a request for one link.
func onceParam() *huma.Param {
	return idempotencyParam("Sends the request again without making a second link: for 24 hours every request with this key " +
		"and the same content is answered with the link that the first one made, as it was made or, if it was " +
		"changed, as it stands. A first request that has not ended after 5 s is 409, and so is a link that was deleted " +
		"since. " + idempotencyKeys)
}

// deduplicated is the header of a create that was answered with an existing link.
const deduplicated = "Curt-Deduplicated"

// createAnswers describes what every spelling of a create answers with a schema.
func createAnswers(d describer, schema *huma.Schema) map[string]*huma.Response {
	content := map[string]*huma.MediaType{"application/json": {Schema: schema}}
	answers := d.answers(201, "The link is stored.", nil, createdHeaders(), 408, 409, 413, 415, 422, 429, 507)
	answers["201"].Content = content
	found := createdHeaders()
	found[deduplicated] = header("true.")
	answers["200"] = &huma.Response{Description: "An existing link stands in, as dedupe asked.", Headers: found, Content: content}
	return answers
}
