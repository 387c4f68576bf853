package redirect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"curt/internal/link"
	"curt/internal/qr"
)

// pictureCache says how long the picture of a code may be cached. It says nothing that
// the short URL does not, and a dead link does not redirect from it either; afterwards its
// ETag is revalidated, which costs a look-up and no drawing.
const pictureCache = "public, max-age=300"

// pictured returns the code of "/{code}/qr". An escaped slash divides nothing.
func pictured(r *http.Request) (link.Code, bool) {
	const suffix = "/qr"
	if !strings.HasSuffix(r.URL.Path, suffix) || !strings.HasSuffix(r.URL.EscapedPath(), suffix) {
		return "", false
	}
	code := strings.TrimPrefix(strings.TrimSuffix(r.URL.Path, suffix), "/")
	return link.Code(code), len(code) > 0
}

// serveQR answers with the QR code of a link, for as long as the link would lead a
// visitor somewhere; otherwise with what the visitor would see. It counts no
// click, and spends none.
func (h *Handler) serveQR(w http.ResponseWriter, r *http.Request, code link.Code) {
	_, out := h.Peek(r, code)
	if out.Problem == Warning { // a page of 200 would look like a picture that failed
		out = refuse(Warning, Request{Accept: r.Header["Accept"]})
	}
	if out.Problem != NoProblem {
		h.write(w, r, out)
		return
	}
	h.draw(w, r, h.pictures.Text(link.Key{Domain: h.hosts.Load().Find(r.Host).Domain(), Code: code}))
}

// draw answers with a picture of the text, as the query asks for it.
func (h *Handler) draw(w http.ResponseWriter, r *http.Request, text string) {
	o, err := qr.ParseQuery(r.URL.RawQuery)
	if err != nil {
		h.refuseQR(w, r, err)
		return
	}
	header := w.Header()
	if o.Format == qr.Any {
		header["Vary"] = h.values.accept
		o.Format = qr.Preferred(r.Header["Accept"])
	}
	tag := o.Tag(text)
	fresh := qr.Matches(r.Header["If-None-Match"], tag)
	var picture []byte
	if !fresh {
		if picture, err = h.pictures.Drawer.Draw(r.Context(), text, o); err != nil {
			h.refuseQR(w, r, err)
			return
		}
	}
	header["Etag"] = []string{tag}
	header["Cache-Control"] = []string{pictureCache}
	header["Content-Security-Policy"] = []string{qr.ContentSecurityPolicy}
	header["X-Content-Type-Options"] = h.values.nosniff
	header["X-Robots-Tag"] = h.values.noIndex
	if fresh {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header["Content-Type"] = []string{o.Format.MediaType()}
	header["Content-Length"] = []string{strconv.Itoa(len(picture))}
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(picture) //nolint:gosec // an image that internal/qr drew from checked options; the visitor is gone on an error
	}
}

// refuseQR answers for a picture that is not drawn: 400 for what was asked, 503 when
// too many ask.
func (h *Handler) refuseQR(w http.ResponseWriter, r *http.Request, err error) {
	status, kind, title, detail := http.StatusServiceUnavailable, "unavailable", "Try again in a moment", "Too many QR codes are being generated."
	bad, isBad := qr.AsError(err)
	switch {
	case isBad:
		status, kind, title, detail = http.StatusBadRequest, "invalid-request", "Invalid request", bad.Error()
	case errors.Is(err, qr.ErrBusy), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		w.Header()["Retry-After"] = []string{strconv.Itoa(retrySeconds)}
	default: // a text too long: no short URL is
		status, kind, title, detail = http.StatusInternalServerError, "internal", "Internal server error", "This QR code cannot be generated."
		h.report(r.Context(), Outcome{Status: status}, err)
	}
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"/problems/" + kind, title, status, detail})
	if err != nil {
		body = nil // text always can be written
	}
	header := w.Header()
	delete(header, "Vary")
	header["Content-Type"] = h.values.json
	header["Cache-Control"] = h.values.cache[noStore]
	header["X-Content-Type-Options"] = h.values.nosniff
	header["X-Robots-Tag"] = h.values.noIndex
	header["Content-Length"] = []string{strconv.Itoa(len(body) + 1)}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n')) // an error means that the visitor has left
	}
}

// Pictures is what a Handler draws QR codes with.
type Pictures struct {
	Drawer *qr.Drawer
	// Text returns what the code of a link says: its short URL, with the trigger.
	Text func(link.Key) string
}
