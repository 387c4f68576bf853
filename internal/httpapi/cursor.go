package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"

	"curt/internal/link"
	"curt/internal/search"
)

// macSize is how much of the HMAC a cursor carries: 128 bits are not forged.
const macSize = 16

// maxCursor bounds a cursor in characters; a store's own cursor is a key at most.
const maxCursor = 1024

// cursors signs positions of a walk before strangers get them, bound to the
// filter of that walk: a cursor is the store's own bytes, which nobody else may
// choose, and means nothing in another walk.
type cursors struct{ key []byte }

// seal returns the cursor that continues a walk of links, "" at its end.
func (c cursors) seal(f search.Filter, next link.Cursor) string {
	return c.sealWalk(walkOf(f), string(next))
}

// open returns the position of a cursor that seal made for the same filter.
func (c cursors) open(f search.Filter, sealed string) (link.Cursor, bool) {
	next, ok := c.openWalk(walkOf(f), sealed)
	return link.Cursor(next), ok
}

// walkOf names a walk of links.
func walkOf(f search.Filter) []string {
	domain := "*" // no canonical host
	if f.Domain != nil {
		domain = string(*f.Domain)
	}
	fixed := string([]byte{byte(f.Status), byte(f.State), byte(f.Order)})
	return []string{"links", string(f.Workspace), domain, fixed, f.Tag, strings.Join(f.Words, " ")} // no word holds a space
}

// sealWalk returns the cursor that continues any walk, "" at its end. The first part
// of a walk says of what it is.
func (c cursors) sealWalk(walk []string, next string) string {
	if next == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(c.mac(walk, next), next...))
}

// openWalk returns the position of a cursor that sealWalk made for the same walk.
func (c cursors) openWalk(walk []string, sealed string) (string, bool) {
	if len(sealed) > maxCursor {
		return "", false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || len(raw) <= macSize {
		return "", false
	}
	next := string(raw[macSize:])
	return next, hmac.Equal(raw[:macSize], c.mac(walk, next))
}

func (c cursors) mac(walk []string, next string) []byte {
	h := hmac.New(sha256.New, c.key)
	for _, part := range append(slices.Clone(walk), next) {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)[:macSize]
}
