package web_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/ratelimit"
	"curt/internal/shorten/create"
)

// unread is a body that nobody may look at.
type unread struct{ reads int }

func (u *unread) Read([]byte) (int, error) { u.reads++; return 0, errors.New("nobody may read this") }

// Who has spent a limit is told so before the form is read.
func TestNoFormIsReadOfWhoMayNot(t *testing.T) {
	s := newSite(t, func(p *parts) {
		p.create.Plans = create.Plans{auth.PlanAnonymous: {ratelimit.Per(1, time.Minute)}}
	})
	s.page(t, 201, "POST", "/", encode("url", "https://example.com/"))
	body := &unread{}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
	r.Host = "curt.test"
	r.Header.Set("Content-Type", form)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	s.pages.ServeHTTP(w, r)
	if w.Code != http.StatusTooManyRequests || body.reads != 0 {
		t.Errorf("%d; the form was read %d times", w.Code, body.reads)
	}
}
