package kernel

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// macSize is how much of the HMAC a cursor carries: 128 bits are not forged.
const macSize = 16

// maxCursor bounds a cursor in characters; a store's own cursor is a key at most.
const maxCursor = 1024

// cursors signs positions of a walk before strangers get them, bound to the
// filter of that walk: a cursor is the store's own bytes, which nobody else may
// choose, and means nothing in another walk.
type cursors struct{ key []byte }

// Seal returns the cursor that continues a walk, "" at its end. The first part of a walk says
// of what it is.
func (c *Call) Seal(walk []string, next string) string { return c.kernel.cursors.seal(walk, next) }

// Unseal returns the position of the query's cursor, which [Call.Seal] returned for the same walk; "" = it has none.
func (c *Call) Unseal(walk []string) (string, error) {
	sealed := c.Query.Get("cursor")
	if sealed == "" {
		return "", nil
	}
	next, ok := c.kernel.cursors.open(walk, sealed)
	if !ok {
		return "", BadCursor()
	}
	return next, nil
}

// BadCursor refuses a cursor of another walk.
func BadCursor() error { return BadField("cursor", "invalid cursor") }

func (c cursors) seal(walk []string, next string) string {
	if next == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(c.mac(walk, next), next...))
}

// open returns the position of a cursor that seal made for the same walk.
func (c cursors) open(walk []string, sealed string) (string, bool) {
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
