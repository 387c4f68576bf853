package web

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"curt/internal/bodies"
	"curt/internal/hosts"
)

// site is what every group of pages needs. Its fields are set once in New.
type site struct {
	pages       *Pages
	log         *slog.Logger
	hosts       *hosts.Current
	bodies      *bodies.Budget
	origins     *http.CrossOriginProtection
	clientAddr  func(*http.Request) netip.Addr
	api, public bool
	now         func() time.Time
}

// leads reports whether the request came under the name of the service, and not under
// one that is for links only.
func (s *site) leads(r *http.Request) bool {
	place := s.hosts.Load().Find(r.Host)
	return !s.public || place.Served() && place.Domain() == ""
}

// write answers with a page that nobody keeps.
func (s *site) write(w http.ResponseWriter, r *http.Request, status int, name string, content any) {
	s.pages.write(w, r, s.log, status, name, content)
}

// say answers with a page that says one thing.
func (s *site) say(w http.ResponseWriter, r *http.Request, status int, title, detail, back string) {
	s.write(w, r, status, "message", message{shell: s.pages.shell(title), Detail: detail, Status: statusLine(status), Back: back})
}

// methods answers a method that a page with a form does not take.
func (s *site) methods(w http.ResponseWriter, r *http.Request) {
	const allow = "GET, HEAD, POST"
	w.Header().Set("Allow", allow)
	s.say(w, r, http.StatusMethodNotAllowed, "Method not allowed", "This page supports only "+allow+".", "")
}

// failure logs a failure of the server's own and returns the id that names it.
func (s *site) failure(r *http.Request, status int, err error) (id string) {
	if errors.Is(err, context.Canceled) {
		return ""
	}
	id = rand.Text()
	level := slog.LevelWarn
	if status == http.StatusInternalServerError {
		level = slog.LevelError
	}
	s.log.LogAttrs(r.Context(), level, "page failed", slog.Int("status", status), slog.String("request_id", id), slog.Any("err", err))
	return id
}

// elsewhere tells who comes under a name that is not this server's where the form is
// taken: a page of that name could send it for its visitors.
func (s *site) elsewhere(w http.ResponseWriter, r *http.Request, path string) {
	s.say(w, r, http.StatusMisdirectedRequest, "Wrong host", "Use the address of this service: "+s.hosts.Load().Base()+path, s.hosts.Load().Base()+path)
}
