package frontend

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	securityPath = "/.well-known/security.txt"

	// securityLasts is how far ahead Expires is: RFC 9116 wants less than a year, so that
	// nobody trusts what is no longer looked after. It is counted from each answer: a
	// running server, whose settings say whom to tell, vouches for them, and one that is
	// gone answers nothing. Copies that others keep end with the quarter.
	securityLasts = 90 * 24 * time.Hour
)

// newSecurityText names the contacts for vulnerabilities (RFC 9116); nil = there are none.
func newSecurityText(contacts []string, base string) http.Handler {
	if len(contacts) == 0 {
		return nil
	}
	var head strings.Builder
	for _, c := range contacts {
		head.WriteString("Contact: " + c + "\r\n")
	}
	tail := ""
	if strings.HasPrefix(base, "https://") { // the only kind that may be named
		tail = "Canonical: " + base + securityPath + "\r\n"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		if !isRead(r) {
			h.Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		// The same all day, so that it can be compared.
		ends := time.Now().UTC().Truncate(24 * time.Hour).Add(securityLasts)
		text := head.String() + "Expires: " + ends.Format(time.RFC3339) + "\r\n" + tail
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "public, max-age=86400")
		h.Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(http.StatusOK)
		if r.Method != http.MethodHead {
			_, _ = w.Write([]byte(text)) // the client is gone
		}
	})
}
