package redirect

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"curt/internal/link"
)

// Passes creates and checks what continues from a warning page: a pair of the query of the
// link's own URL, which the page links to and nothing follows automatically.
//
// A pass holds for five minutes, for one version of one link, for one destination (the
// link's, or its fallback), and for the network that was shown the page. So it cannot be
// shared with other visitors, who would skip a page that they never saw; with an expired or a
// shared pass the page is shown. It opens nothing but a warning: a link
// that is blocked in the meantime stays blocked.
//
// A pass is not secret: it says nothing about its visitor, and what it opens is
// public. It stays in the link's own query, and is forwarded to no destination.
type Passes struct{ key []byte }

const (
	passLasts = 5 * time.Minute
	passPair  = "curt_pass=" // what the pair of the query begins with
	passMAC   = 16           // half of SHA-256 (RFC 2104, section 5)
	passSize  = 8 + passMAC  // before it the end, in Unix milliseconds
)

// minPassKey is the fewest bytes of a key that cannot be guessed.
const minPassKey = 16

// NewPasses returns passes under a key of at least 16 bytes, which stays the same over
// restarts, or pages that are open end early.
func NewPasses(key []byte) (*Passes, error) {
	if len(key) < minPassKey {
		return nil, errors.New("redirect: the key of passes is too short")
	}
	return &Passes{key}, nil
}

// onward returns path and query of the address that leads on to a destination of t; ""
// without Passes.
func (p *Passes) onward(k link.Key, t link.Target, to string, q Request, now time.Time) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	b.WriteByte('/')
	b.WriteString(string(k.Code))
	b.WriteByte('?')
	if t.ForwardQuery {
		for pair := range strings.SplitSeq(q.Query, "&") {
			if !isOwnPair(pair) {
				encode(&b, pair)
				b.WriteByte('&')
			}
		}
	}
	if ViaQR(q.Query) {
		b.WriteString(qrPair + "&")
	}
	b.WriteString(passPair)
	until := binary.BigEndian.AppendUint64(make([]byte, 0, passSize), uint64(now.Add(passLasts).UnixMilli()))
	b.WriteString(base64.RawURLEncoding.EncodeToString(append(until, p.mac(k, t.Version, to, q.Client, until)...)))
	return b.String()
}

// opens reports whether the request carries a pass to a destination of t. Only a visitor who
// would be shown the page may have one, and a browser that fetches ahead of its
// user has none.
func (p *Passes) opens(k link.Key, t link.Target, to string, q Request, now time.Time) bool {
	isHead := q.Method == http.MethodHead
	if p == nil || q.Method != http.MethodGet && !isHead || q.Preview && !isHead || !wantsHTML(q.Accept) {
		return false
	}
	last := q.Query[strings.LastIndexByte(q.Query, '&')+1:]
	text, ok := strings.CutPrefix(last, passPair)
	if !ok {
		return false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != passSize {
		return false
	}
	until := binary.BigEndian.Uint64(b)
	return hmac.Equal(b[8:], p.mac(k, t.Version, to, q.Client, b[:8])) && now.UnixMilli() >= 0 && uint64(now.UnixMilli()) < until
}

// mac covers all that a pass is bound to. Texts end with a byte that none of them holds.
func (p *Passes) mac(k link.Key, v link.Version, to string, from netip.Addr, until []byte) []byte {
	h := hmac.New(sha256.New, p.key)
	for _, text := range []string{string(k.Domain), string(k.Code), to, neighbourhood(from)} {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(v)))
	h.Write(until)
	return h.Sum(nil)[:passMAC]
}

// neighbourhood is the network of a visitor, so wide that it does not change during the visit of
// a page: carriers give a customer's connections several addresses near each other.
func neighbourhood(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	bits := 24
	if addr.Is6() {
		bits = 48
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return "" // unknown addresses are one network
	}
	return prefix.String()
}

// isOwnPair reports whether a pair of a query is this service's own, and is not forwarded.
func isOwnPair(pair string) bool {
	return pair == "" || pair == qrPair || strings.HasPrefix(pair, passPair)
}
