package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"curt/internal/clicks"
)

// A cursor of clicks is the MAC and the bookmark: segment, offset, record.
const bookmarkSize = 8 + 8 + 4

// sealClicks returns the cursor that continues a walk over a link's clicks.
func (c cursors) sealClicks(q clicks.HistoryQuery, at clicks.Bookmark) string {
	var b [bookmarkSize]byte
	binary.BigEndian.PutUint64(b[:], at.Position.Segment)
	binary.BigEndian.PutUint64(b[8:], uint64(at.Position.Offset))
	binary.BigEndian.PutUint32(b[16:], at.Record)
	return base64.RawURLEncoding.EncodeToString(append(c.clicksMAC(q, b[:]), b[:]...))
}

// openClicks returns the bookmark of a cursor that sealClicks made for the same
// link, from and to.
func (c cursors) openClicks(q clicks.HistoryQuery, sealed string) (at clicks.Bookmark, ok bool) {
	if len(sealed) != base64.RawURLEncoding.EncodedLen(macSize+bookmarkSize) {
		return at, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || !hmac.Equal(raw[:macSize], c.clicksMAC(q, raw[macSize:])) {
		return at, false
	}
	b := raw[macSize:]
	at.Position.Segment, at.Position.Offset = binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:]))
	at.Record = binary.BigEndian.Uint32(b[16:])
	return at, true
}

// clicksMAC binds a bookmark to the question. Neither domain nor code has a NUL.
func (c cursors) clicksMAC(q clicks.HistoryQuery, bookmark []byte) []byte {
	h := hmac.New(sha256.New, c.key)
	_, _ = fmt.Fprintf(h, "clicks\x00%s\x00%s\x00%d\x00%d\x00%s", q.Key.Domain, q.Key.Code, q.From.UnixMilli(), q.To.UnixMilli(), bookmark)
	return h.Sum(nil)[:macSize]
}
