package web

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"curt/internal/auth"
	"curt/internal/bodies"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/telemetry"
)

// maxForm bounds a form in bytes: a URL of 8,192 fits twice when each byte is escaped.
const maxForm = 64 << 10

// readForm reads a form as browsers send one, each field once, within the budget of bodies. A
// form that finds no room is told when to come again.
func (s *site) readForm(w http.ResponseWriter, r *http.Request) (values url.Values, status int) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return nil, http.StatusUnsupportedMediaType
	}
	body := s.bodies.Request(w, r, maxForm)
	defer body.Close()
	r.Body = http.MaxBytesReader(telemetry.Bare(w), io.NopCloser(body), maxForm)
	err = r.ParseForm()
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, http.StatusRequestEntityTooLarge
	}
	switch {
	case errors.Is(err, bodies.ErrFull):
		w.Header().Set("Retry-After", strconv.Itoa(int(bodies.RetryAfter/time.Second)))
		return nil, http.StatusServiceUnavailable
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, bodies.ErrSlow):
		return nil, http.StatusRequestTimeout
	case err != nil:
		return nil, http.StatusBadRequest
	}
	for _, given := range r.PostForm {
		if len(given) > 1 {
			return nil, http.StatusBadRequest
		}
	}
	return r.PostForm, http.StatusOK
}

// fill keeps what was typed and returns what it asks for.
func (p *home) fill(values url.Values) *shorten.Request {
	p.URL.Value, p.Alias.Value, p.Expiry.Value = values.Get("url"), values.Get("alias"), values.Get("expiry")
	req := &shorten.Request{}
	req.LongURL = shorten.Value(p.URL.Value)
	if p.Alias.Value != "" {
		req.Alias = shorten.Value(p.Alias.Value)
	}
	chosen := p.Expiry.Value == "" || p.Expiry.Value == "0"
	for i := range p.Ends {
		e := &p.Ends[i]
		if e.Chosen = e.Seconds > 0 && strconv.FormatInt(e.Seconds, 10) == p.Expiry.Value; e.Chosen {
			chosen = true
			req.ExpiresIn = shorten.Value(e.Seconds)
		}
	}
	if !chosen {
		p.Expiry.Error = "Choose an option from the list."
	}
	return req
}

// bad reports whether something is known to be wrong.
func (p *home) bad() bool {
	return p.Problem != "" || p.URL.Error != "" || p.Alias.Error != "" || p.Expiry.Error != ""
}

// explain puts what went wrong where it belongs and returns the status that says it.
func (h *homePages) explain(w http.ResponseWriter, r *http.Request, p *home, err error) int {
	if wrong, ok := errors.AsType[*shorten.InvalidError](err); ok {
		p.blame(wrong.Field, wrong.PublicMessage())
		return http.StatusBadRequest
	}
	if listed, ok := errors.AsType[*shorten.ListedError](err); ok {
		p.blame(listed.Field, listed.PublicMessage())
		return http.StatusUnprocessableEntity
	}
	if harmful, ok := errors.AsType[*shorten.HarmfulError](err); ok {
		if !harmful.Case.IsZero() {
			p.Appeal = appealPath + "?case=" + harmful.Case.String()
		}
		p.blame(harmful.Field, harmful.PublicMessage())
		return http.StatusUnprocessableEntity
	}
	if banned, ok := errors.AsType[*shorten.BannedError](err); ok {
		if errors.Is(banned, shorten.ErrBanned) {
			p.Problem = sentence(banned.PublicMessage())
			return http.StatusForbidden
		}
		p.blame(banned.Field, banned.PublicMessage())
		return http.StatusUnprocessableEntity
	}
	if held, ok := errors.AsType[*link.HeldError](err); ok {
		p.Alias.Error = "Someone has reserved this alias for the next " + waiting(held.Reservation.Left) + ". Choose another."
		return http.StatusConflict
	}
	if limited, ok := errors.AsType[*shorten.LimitedError](err); ok {
		wait := limited.Verdict.RetryAfter
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int((wait+time.Second-1)/time.Second))))
		p.Problem = "Too many links were created from your network. Try again in " + waiting(wait) + "."
		return http.StatusTooManyRequests
	}
	switch {
	case errors.Is(err, shorten.ErrReserved):
		p.Alias.Error = "This alias is reserved. Choose another."
		return http.StatusConflict
	case errors.Is(err, shorten.ErrRefused):
		p.Alias.Error = "This alias is not allowed. Choose another."
		return http.StatusConflict
	case errors.Is(err, shorten.ErrTaken):
		p.Alias.Error = "This alias is taken. Choose another."
		return http.StatusConflict
	case errors.Is(err, auth.ErrUnauthenticated), errors.Is(err, auth.ErrForbidden):
		p.Problem = "You can't create links here."
		return http.StatusForbidden
	case errors.Is(err, link.ErrFull), errors.Is(err, codegen.ErrExhausted):
		p.Problem = "The service is full."
		h.failure(r, http.StatusInsufficientStorage, err)
		return http.StatusInsufficientStorage
	case errors.Is(err, link.ErrUnavailable), errors.Is(err, link.ErrUncertain), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		w.Header().Set("Retry-After", "1")
		p.Problem = "Temporarily unavailable. Try again in a moment."
		h.failure(r, http.StatusServiceUnavailable, err)
		return http.StatusServiceUnavailable
	}
	p.Problem = "Internal server error. Error id: " + h.failure(r, http.StatusInternalServerError, err) + "."
	return http.StatusInternalServerError
}

// blame names the field that is wrong.
func (p *home) blame(field, reason string) {
	reason = sentence(reason)
	switch field {
	case "long_url":
		p.URL.Error = reason
	case "custom_alias":
		p.Alias.Error = reason
	case "expires_in":
		p.Expiry.Error = reason
	default:
		p.Problem = reason
	}
}
