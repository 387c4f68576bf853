package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
)

// entryLasts is how long a browser shows statistics after it was given a key: as long
// as people look at a page, and not until the next who uses the machine.
const entryLasts = time.Hour

// entryCookie is the name of the cookie. Its path is the one page that it opens.
const entryCookie = "curt_statistics"

// entrySize is the cookie before base64: the second of its end, the digest of the key,
// and a MAC.
const entrySize = 8 + sha256.Size + sha256.Size

// entries make and read the cookies that open the statistics of one link. A cookie
// holds the digest of the key that was shown, never the key: it opens nothing but this
// page, and nothing once the key has ended.
type entries struct{ key []byte }

func (e entries) mac(k link.Key, said []byte) []byte {
	h := hmac.New(sha256.New, e.key)
	for _, part := range [][]byte{[]byte(k.Domain), []byte(k.Code), said} {
		h.Write(part)
		h.Write([]byte{0})
	}
	return h.Sum(nil)
}

// make returns the cookie's value.
func (e entries) make(k link.Key, sum auth.Sum, now time.Time) string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, entrySize), uint64(now.Add(entryLasts).Unix()))
	b = append(b, sum[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, e.mac(k, b)...))
}

// open returns the digest of the key that a cookie was given for.
func (e entries) open(k link.Key, value string, now time.Time) (sum auth.Sum, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil || len(b) != entrySize {
		return sum, false
	}
	said, mac := b[:8+sha256.Size], b[8+sha256.Size:]
	ends := binary.BigEndian.Uint64(said)
	copy(sum[:], said[8:])
	return sum, hmac.Equal(mac, e.mac(k, said)) && now.Unix() >= 0 && uint64(now.Unix()) < ends
}

// cookie is what a browser is sent; with an empty value it forgets.
func (p *statsPages) cookie(r *http.Request, path, value string) *http.Cookie {
	c := &http.Cookie{ //nolint:gosec // Secure where TLS is spoken; over plain HTTP the browser would not send it back
		Name: entryCookie, Value: value, Path: path, MaxAge: int(entryLasts.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.HasPrefix(p.hosts.Load().Base(), "https:"),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// errNoEntry means that nobody has said who asks.
var errNoEntry = errors.New("neither a key nor a share was sent")

// viewer returns who asks for the statistics of k: whoever a share was given to, or
// whoever showed a key in the last hour that is still one. Errors: errNoEntry,
// auth.ErrUnauthenticated, those of the store.
func (p *statsPages) viewer(r *http.Request, k link.Key, share string) (auth.Principal, error) {
	now := p.now()
	if share != "" {
		return p.shares.Open(r.Context(), now, k, share)
	}
	c, err := r.Cookie(entryCookie)
	if err != nil || !p.api {
		return auth.Principal{}, errNoEntry
	}
	sum, ok := p.entries.open(k, c.Value, now)
	if !ok {
		return auth.Principal{}, fmt.Errorf("%w: the cookie has expired", errNoEntry)
	}
	return p.keys.Recall(r.Context(), sum, now)
}

// enter takes a key and lets the browser show the statistics with it; or takes that
// back.
func (p *statsPages) enter(w http.ResponseWriter, r *http.Request, k link.Key) {
	here := r.URL.EscapedPath()
	switch {
	case p.origins.Check(r) != nil:
		p.say(w, r, http.StatusForbidden, "Cross-site request refused", "This form was sent from another site.", here)
		return
	case !p.api:
		p.write(w, r, http.StatusForbidden, "key", p.ask(r, k, ""))
		return
	}
	values, status := p.readForm(w, r)
	if status != http.StatusOK {
		p.say(w, r, status, "Invalid form", "The request does not match the form on this page.", here)
		return
	}
	value := ""
	if values.Get("leave") == "" {
		key := strings.TrimSpace(values.Get("key"))
		who, err := p.keys.Identify(r.Context(), key, p.now())
		if err != nil {
			p.refuseKey(w, r, k, err)
			return
		}
		if _, _, err := p.find(r.Context(), who, k); err != nil {
			p.refuseKey(w, r, k, err)
			return
		}
		value = p.entries.make(k, auth.SumOf(key), p.now())
	}
	http.SetCookie(w, p.cookie(r, here, value))
	header := w.Header()
	header["Cache-Control"] = []string{"no-store"}
	header["Location"] = []string{here}
	header["Content-Length"] = []string{"0"}
	w.WriteHeader(http.StatusSeeOther)
}

// keyPage asks for a key.
type keyPage struct {
	shell
	Code, Here, Error string
	Open              bool
}

func (p *statsPages) ask(r *http.Request, k link.Key, wrong string) keyPage {
	page := keyPage{shell: p.pages.shell("Statistics of " + string(k.Code)), Code: string(k.Code), Here: r.URL.EscapedPath(), Error: wrong, Open: p.api}
	if wrong != "" {
		page.Title = "Error: " + page.Title
	}
	return page
}

// refuseKey shows the form again, with what is wrong.
func (p *statsPages) refuseKey(w http.ResponseWriter, r *http.Request, k link.Key, err error) {
	status, reason := http.StatusInternalServerError, "Internal server error."
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		status, reason = http.StatusUnauthorized, "Invalid or revoked API key."
		w.Header().Set("WWW-Authenticate", auth.Challenge)
	case errors.Is(err, auth.ErrForbidden):
		status, reason = http.StatusForbidden, "This key can't read statistics."
	case errors.Is(err, link.ErrNotFound):
		status, reason = http.StatusNotFound, "Link not found, or it belongs to another workspace."
	case unavailable(err):
		status, reason = http.StatusServiceUnavailable, "The statistics are temporarily unavailable. Try again in a moment."
		w.Header().Set("Retry-After", "1")
	}
	if status >= http.StatusInternalServerError {
		p.failure(r, status, err)
	}
	p.write(w, r, status, "key", p.ask(r, k, reason))
}
