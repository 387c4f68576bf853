package web

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"curt/internal/hosts"
	"curt/internal/link"
	"curt/internal/redirect"
)

// LinksConfig is what [NewLinkPages] needs. Everything but Now is required.
type LinksConfig struct {
	Pages    *Pages
	Visitors *redirect.Handler // says where links lead
	Log      *slog.Logger

	// Hosts are those of this service, for short URLs.
	Hosts *hosts.Current

	// Now returns the time; nil = time.Now.
	Now func() time.Time
}

// LinkPages serves previews and the files that pages are made with, for a listener without
// an API: they stand on nothing but links.
type LinkPages struct{ cfg LinksConfig }

// NewLinkPages returns LinkPages.
func NewLinkPages(cfg LinksConfig) (*LinkPages, error) {
	if cfg.Pages == nil || cfg.Visitors == nil || cfg.Log == nil || cfg.Hosts == nil {
		return nil, errors.New("web: a part of the pages of links is missing")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &LinkPages{cfg}, nil
}

// Serves reports whether the request is for such a page or file.
func (l *LinkPages) Serves(r *http.Request) bool {
	_, serve := l.route(r)
	return serve != nil
}

// ServeHTTP answers a request that Serves takes, as [Handler] does.
func (l *LinkPages) ServeHTTP(w http.ResponseWriter, r *http.Request) { answer(w, r, l.route) }

// route is that of [Handler] for its paths.
func (l *LinkPages) route(r *http.Request) (pattern string, serve http.HandlerFunc) {
	p := r.URL.Path
	switch {
	case strings.HasPrefix(p, staticPrefix):
		if f, ok := l.cfg.Pages.files[p]; ok {
			return staticPrefix + "{file}", f.serve
		}
	case strings.HasSuffix(p, "+"):
		if code := strings.TrimSuffix(p[1:], "+"); link.ValidCode(code) && strings.HasSuffix(r.URL.EscapedPath(), "+") {
			return "/{code}+", func(w http.ResponseWriter, r *http.Request) { l.preview(w, r, link.Code(code)) }
		}
	}
	return "", nil
}

// answer has a request answered by whom route names. It notes in Request.Pattern which page
// that was, as an http.ServeMux does: nothing of what a visitor chose is in it.
func answer(w http.ResponseWriter, r *http.Request, route func(*http.Request) (string, http.HandlerFunc)) {
	pattern, serve := route(r)
	if serve == nil {
		http.NotFound(w, r)
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		pattern = "GET " + pattern
	case http.MethodPost:
		pattern = "POST " + pattern
	}
	r.Pattern = pattern
	serve(w, r)
}

// write answers with a page that nobody keeps.
func (p *Pages) write(w http.ResponseWriter, r *http.Request, log *slog.Logger, status int, name string, content any) {
	page, err := p.make(name, content)
	if err != nil {
		log.LogAttrs(r.Context(), slog.LevelError, "page failed", slog.Any("err", err))
		http.Error(w, statusLine(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header["Content-Type"] = []string{"text/html; charset=utf-8"}
	header["Content-Length"] = []string{strconv.Itoa(len(page))}
	header["Content-Security-Policy"] = []string{policy}
	header["Cache-Control"] = []string{"no-store"}
	header["X-Content-Type-Options"] = []string{"nosniff"}
	if header["Referrer-Policy"] == nil { // "no-referrer" would have browsers send forms with "Origin: null"
		header["Referrer-Policy"] = []string{"same-origin"}
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(page) // the visitor is gone on an error
	}
}
