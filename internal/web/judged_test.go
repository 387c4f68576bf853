package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/internal/abuse"
	"curt/internal/link"
	"curt/internal/moderation"
)

// clerk is a judge.Moderator that knows some bans, and the journal to it.
type clerk struct{}

func (clerk) BeginWrite() (leave func()) { return func() {} }

func (clerk) Verdict(link.WorkspaceID, string) (verdict moderation.Entry, decided bool) {
	return verdict, false
}

func (clerk) CheckBan(f *abuse.Facts) (ban moderation.Entry, barred bool) {
	switch f.URL.Host() {
	case "banned.example":
		return moderation.Entry{Entity: moderation.Entity{Kind: moderation.KindHost, Name: "banned.example"}}, true
	case "nobody.example":
		return moderation.Entry{Entity: moderation.Entity{Kind: moderation.KindNetwork, Name: "192.0.2.0/24"}}, true
	}
	return ban, false
}

func (clerk) Apply(context.Context, time.Time, link.Key) (link.Link, error) {
	return link.Link{}, link.ErrUnavailable
}

func (clerk) Append(_ context.Context, e ...moderation.Entry) ([]moderation.Entry, error) {
	return e, nil
}

func (clerk) EffectiveDecision(context.Context, link.ID) (moderation.Entry, error) {
	return moderation.Entry{}, moderation.ErrNotFound
}

// judged has hosts that are called so be found to be so.
func judged(p *parts) {
	p.create.Moderator, p.create.Journal = clerk{}, clerk{}
	p.create.Judge = func(_ context.Context, _ time.Time, f *abuse.Facts) abuse.Decision {
		switch f.URL.Host() {
		case "warn.example":
			return abuse.Decision{Safety: link.Warn, Score: 60}
		case "blocked.example":
			return abuse.Decision{Safety: link.Blocked, Score: 100}
		}
		return abuse.Decision{Safety: link.Clean}
	}
}

func TestTheFormSaysWhatWasFound(t *testing.T) {
	s := newSite(t, judged)
	const notice = "visitors see a warning first"
	d := s.page(t, http.StatusCreated, "POST", "/", encode("url", "https://warn.example/", "expiry", "0"))
	if !strings.Contains(text(d.root), notice) {
		t.Errorf("the maker is not told: %s", text(d.root))
	}
	d = s.page(t, http.StatusCreated, "POST", "/", encode("url", "https://example.com/", "expiry", "0"))
	if strings.Contains(text(d.root), notice) {
		t.Errorf("the maker is told of nothing: %s", text(d.root))
	}
	for host, says := range map[string]string{"blocked": "use another URL", "banned": "does not allow links to this destination"} {
		d = s.page(t, http.StatusUnprocessableEntity, "POST", "/", encode("url", "https://"+host+".example/", "expiry", "0"))
		if got := text(d.byID("url-error")); !strings.Contains(got, says) || strings.Contains(got, "100") {
			t.Errorf("%s: the field says %q", host, got)
		}
	}
	d = s.page(t, http.StatusForbidden, "POST", "/", encode("url", "https://nobody.example/", "expiry", "0"))
	if !strings.Contains(text(d.root), "Your network is banned") {
		t.Errorf("the page says %s", text(d.root))
	}
	if n := len(s.stored(t)); n != 2 {
		t.Errorf("%d links", n)
	}
}

// What is decided about a link shows on every page of its own.
func TestDecisionsShowOnEveryPage(t *testing.T) {
	s := newSite(t)
	for safety, want := range map[link.Safety]struct {
		visit, look, program int
		says                 string
	}{
		link.Warn:        {200, 200, 403, "may be harmful"},
		link.Quarantined: {200, 200, 403, "may be harmful"},
		link.Blocked:     {403, 403, 403, "blocked"},
		link.Legal:       {451, 451, 451, "legal"},
	} {
		code := "is-" + strings.Repeat("x", int(safety))
		s.put(t, code, func(l *link.Link) { l.Safety, l.Destination = safety, "https://far.example/a?b=c" })
		for _, method := range []string{"GET", "HEAD"} {
			for path, status := range map[string]int{"/" + code: want.visit, "/" + code + "+": want.look} {
				w := s.do(t, method, path, "")
				if w.Code != status || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Location") != "" {
					t.Errorf("%v: %s %s: %d %v", safety, method, path, w.Code, w.Header())
				}
			}
			if w := s.do(t, method, "/"+code, "", "Accept: */*"); w.Code != want.program {
				t.Errorf("%v: %s by a program: %d", safety, method, w.Code)
			}
		}
		d := s.page(t, want.look, "GET", "/"+code+"+", "")
		if !strings.Contains(text(d.root), want.says) || strings.Contains(text(d.root), "far.example") != (safety <= link.Quarantined) {
			t.Errorf("%v: the preview says %s", safety, text(d.root))
		}
		if w := s.do(t, "POST", "/"+code+"+", ""); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%v: POST to the preview: %d", safety, w.Code)
		}
		if w := s.do(t, "GET", "/"+code+"/stats", ""); w.Code != http.StatusOK && w.Code != http.StatusUnauthorized {
			t.Errorf("%v: statistics: %d", safety, w.Code)
		}
	}
}
