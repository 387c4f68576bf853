package web_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
	"curt/internal/moderation/moderator"
	"curt/internal/ratelimit"
	"curt/internal/review"
)

// newDesk is a desk in memory that takes five reports and five appeals an hour.
func newDesk(t testing.TB, links *linktest.Memory) (*review.Service, *moderator.Moderator) {
	t.Helper()
	cases, journal, limit := moderationtest.NewMemoryCases(), moderationtest.NewMemory(), ratelimit.Per(5, time.Hour)
	mods, err := moderator.Open(t.Context(), moderator.Config{Journal: journal, Progress: journal, Links: links, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	desk, err := review.New(review.Config{
		Cases: cases, Appeals: cases, Destinations: cases, Journal: journal, Moderator: mods, Links: links, DayKeys: dayKeys{}, Limits: ratelimit.NewMemory(),
		ReportLimit: &limit, AppealLimit: &limit, Random: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	return desk, mods
}

type dayKeys struct{}

func (dayKeys) DayKey(context.Context, time.Time) (key [16]byte, err error) { return key, nil }

func reviewer() auth.Principal {
	return auth.Principal{KeyID: "mod", Scopes: []auth.Scope{auth.Admin}}
}

// decide decides about the link abc.
func (s site) decide(t *testing.T, safety link.Safety) {
	t.Helper()
	orders := []moderator.Order{{Key: link.Key{Code: "abc"}, Safety: safety, Reason: "for the journal"}}
	if _, err := s.mods.Decide(t.Context(), time.Now(), "mod", orders); err != nil {
		t.Fatal(err)
	}
}

// waiting returns the cases that wait.
func (s site) waiting(t *testing.T) []review.Row {
	t.Helper()
	rows, _, err := s.desk.List(t.Context(), reviewer(), moderation.CaseFilter{}, moderation.CasePage{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestAnybodyMayReportALink(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(*link.Link) {})
	d := s.page(t, 200, "GET", "/report?code=abc", "")
	if got := attr(d.byID("link"), "value"); got != "https://curt.test/abc" {
		t.Errorf("the form names %q", got)
	}
	sent := encode("link", "https://curt.test/abc", "category", "phishing", "text", "asks for\r\nmy password", "contact", " me@example.com ")
	taken := s.page(t, 202, "POST", "/report", sent)
	rows := s.waiting(t)
	if len(rows) != 1 || rows[0].Case.Reports.By[moderation.Phishing] != 1 {
		t.Fatalf("%+v", rows)
	}
	f, err := s.desk.Show(t.Context(), reviewer(), link.Key{Code: "abc"})
	if err != nil || f.Notes[0].Text != "asks for\r\nmy password" || f.Notes[0].Contact != "me@example.com" {
		t.Errorf("%+v, %v", f.Notes, err)
	}
	// Of a link that nobody has the same is said.
	other := s.page(t, 202, "POST", "/report", encode("link", "nobody", "category", "spam"))
	if taken.Body.String() != other.Body.String() || len(s.waiting(t)) != 1 {
		t.Errorf("the answers differ:\n%s\n%s", taken.Body, other.Body)
	}
	if s.log.Len() != 0 {
		t.Errorf("logged: %s", s.log)
	}
}

func TestAReportThatCannotBeTakenIsShownAgain(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(*link.Link) {})
	for name, c := range map[string]struct{ link, category, text, contact, blamed string }{
		"no link":       {"", "spam", "", "", "link"},
		"another's":     {"https://evil.example/abc", "spam", "", "", "link"},
		"markup":        {`"><script>alert(1)</script>`, "spam", "", "", "link"},
		"no category":   {"abc", "", "", "", "category"},
		"a strange one": {"abc", "nice", "", "", "category"},
		"long":          {"abc", "spam", strings.Repeat("x", 1001), "", "text"},
		"escape":        {"abc", "spam", "\x1b[2J", "", "text"},
		"lines":         {"abc", "spam", "", "a\nb", "contact"},
	} {
		sent := encode("link", c.link, "category", c.category, "text", c.text, "contact", c.contact)
		d := s.page(t, 400, "POST", "/report", sent)
		if d.byID(c.blamed+"-error") == nil || !strings.HasPrefix(text(d.all("title")[0]), "Error: ") || attr(d.byID("link"), "value") != c.link {
			t.Errorf("%s: %s", name, text(d.root))
		}
	}
	for range 5 {
		s.page(t, 202, "POST", "/report", encode("link", "abc", "category", "spam"))
	}
	d := s.page(t, 429, "POST", "/report", encode("link", "abc", "category", "spam"))
	if d.Header().Get("Retry-After") == "" || !strings.Contains(text(d.root), "Try again in 12 minutes") {
		t.Errorf("%v %s", d.Header(), text(d.root))
	}
	if n := s.waiting(t)[0].Case.Reports.Count; n != 5 {
		t.Errorf("%d reports are stored", n)
	}
}

func TestTheFormsOfStrangersComeFromTheirPages(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(l *link.Link) { l.Safety, l.Workspace = link.Warn, link.WorkspaceAnonymous })
	for _, path := range []string{"/report", "/appeal"} {
		sent := encode("link", "abc", "category", "spam", "reason", "mine")
		for _, headers := range fromElsewhere() {
			s.page(t, 403, "POST", path, sent, headers...)
		}
		s.page(t, 421, "POST", path, sent, "Host: evil.example")
		s.page(t, 421, "GET", path, "", "Host: evil.example")
		s.page(t, 415, "POST", path, sent, "Content-Type: text/plain")
		s.page(t, 400, "POST", path, sent+"&link=abc")
		s.page(t, 413, "POST", path, "link=abc&text="+strings.Repeat("x", 70_000))
		s.page(t, 405, "PUT", path, "")
		if w := s.do(t, "HEAD", path, ""); w.Code != 200 || w.Body.Len() != 0 {
			t.Errorf("HEAD %s: %d", path, w.Code)
		}
	}
	if rows := s.waiting(t); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}

// failing is a Challenge that nobody passes.
type failing struct{ err error }

func (f failing) Verify(_ context.Context, r *http.Request) error {
	if r.PostForm.Get("token") == "passed" {
		return nil
	}
	return f.err
}

func TestAChallengeStandsBeforeTheForms(t *testing.T) {
	for status, err := range map[int]error{403: review.ErrChallenge, 503: link.ErrUnavailable} {
		s := newSite(t, func(p *parts) { p.Challenge = failing{err} })
		s.put(t, "abc", func(l *link.Link) { l.Safety, l.Workspace = link.Warn, link.WorkspaceAnonymous })
		for _, path := range []string{"/report", "/appeal"} {
			sent := encode("link", "abc", "category", "spam", "reason", "mine")
			s.page(t, status, "POST", path, sent)
			s.page(t, 202, "POST", path, sent+"&token=passed")
		}
	}
}

// The link that a visitor comes from is named in the form, whichever page it was; and
// never one of another site.
func TestTheFormsNameTheLinkThatAVisitorComesFrom(t *testing.T) {
	s := newSite(t)
	for from, want := range map[string]string{
		"https://curt.test/abc": "https://curt.test/abc", "https://curt.test/abc+": "https://curt.test/abc", "http://curt.test/a-_1?x=y#z": "https://curt.test/a-_1",
		"https://evil.example/abc": "", "https://curt.test/": "", "https://curt.test/abc/stats": "", "https://curt.test/report": "", "https://curt.test/appeal": "",
		"https://curt.test/%22%3E": "", "javascript:alert(1)": "", "%": "",
	} {
		for _, path := range []string{"/report", "/appeal"} {
			d := s.page(t, 200, "GET", path, "", "Referer: "+from)
			if got := attr(d.byID("link"), "value"); got != want {
				t.Errorf("%s from %s: %q, want %q", path, from, got, want)
			}
		}
	}
	for _, code := range []string{"%22%3E%3Cscript%3E", "a/b", "..", strings.Repeat("a", 65)} {
		if got := attr(s.page(t, 200, "GET", "/report?code="+code, "").byID("link"), "value"); got != "" {
			t.Errorf("code %s: %q", code, got)
		}
	}
	if got := attr(s.page(t, 200, "GET", "/report?code=abc", "", "Host: go.example").byID("link"), "value"); got != "https://go.example/abc" {
		t.Errorf("on another domain: %q", got)
	}
}

func TestThePreviewLeadsToTheReport(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(*link.Link) {})
	d := s.page(t, 200, "GET", "/abc+", "")
	if !leadsTo(d, "/report?code=abc") {
		t.Errorf("%s", d.Body)
	}
}

// leadsTo reports whether a page has a link to there.
func leadsTo(d document, href string) bool {
	for _, a := range d.all("a") {
		if attr(a, "href") == href {
			return true
		}
	}
	return false
}

func TestTheOwnerOfALinkMayAppeal(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(l *link.Link) { l.Workspace = link.WorkspaceAnonymous })
	s.decide(t, link.Blocked)
	const reason = `It is mine. </textarea><script>alert(1)</script>`
	d := s.page(t, 202, "POST", "/appeal", encode("link", "abc", "reason", reason))
	address, err := url.Parse(attr(d.byID("answer"), "value"))
	if err != nil || address.Host != "curt.test" || address.Path != "/appeal" || d.Header().Get("Referrer-Policy") != "no-referrer" {
		t.Fatalf("%v, %v", address, err)
	}
	show := func(status int) string {
		t.Helper()
		shown := s.page(t, status, "GET", address.RequestURI(), "")
		if shown.Header().Get("Referrer-Policy") != "no-referrer" || strings.Contains(shown.Body.String(), "It is mine") {
			t.Errorf("%v %s", shown.Header(), shown.Body)
		}
		return text(shown.root)
	}
	if said := show(200); !strings.Contains(said, "Waiting for a moderator") || !strings.Contains(said, "https://curt.test/abc") {
		t.Errorf("while it is open: %s", said)
	}
	if again := s.page(t, 409, "POST", "/appeal", encode("link", "abc", "reason", reason)); !strings.Contains(text(again.byID("link-error")), "already pending") ||
		!strings.Contains(text(again.byID("reason")), reason) {
		t.Errorf("a second one: %s", again.Body)
	}
	answer := review.Ruling{Key: link.Key{Code: "abc"}, Safety: link.Clean, Reason: "You are right.\n<b>Sorry.</b>"}
	if _, err := s.desk.Answer(t.Context(), time.Now(), reviewer(), answer); err != nil {
		t.Fatal(err)
	}
	if said := show(200); !strings.Contains(said, "The link works again.") || !strings.Contains(said, "You are right.") || !strings.Contains(said, "<b>Sorry.</b>") {
		t.Errorf("answered: %s", said)
	}
	ban, err := s.mods.Ban(t.Context(), time.Now(), "mod", moderation.Entity{Kind: moderation.KindLink, Name: "/abc"}, link.Blocked, "x")
	if err != nil {
		t.Fatal(err)
	}
	if said := show(200); strings.Contains(said, "works again") || !strings.Contains(said, "A ban overrides it") || !strings.Contains(said, "stays blocked") {
		t.Errorf("under a ban: %s", said)
	}
	if _, err := s.mods.Lift(t.Context(), time.Now(), "mod", ban.Entry.Sequence, "x"); err != nil {
		t.Fatal(err)
	}
	s.decide(t, link.Warn)
	if said := show(200); !strings.Contains(said, "A later decision replaced it. Visitors of the link see a warning.") {
		t.Errorf("decided again: %s", said)
	}
	s.page(t, 404, "GET", "/appeal?token=AAAAAAAAAAAAAAAAAAAAAA", "")
	s.page(t, 404, "GET", "/appeal?token=%22%3E", "")
}

func TestWhoMayNotAppealIsTold(t *testing.T) {
	s := newSite(t)
	s.put(t, "abc", func(l *link.Link) { l.Workspace = "acme" })
	s.put(t, "nobodys", func(l *link.Link) { l.Workspace = link.WorkspaceAnonymous })
	s.decide(t, link.Warn)
	var keys []string
	admin := auth.Principal{KeyID: "admin", Workspace: link.WorkspaceDefault, Scopes: []auth.Scope{auth.Admin}}
	for _, scope := range []auth.Scope{auth.LinksRead, auth.LinksWrite} {
		_, secret, err := s.keys.Create(t.Context(), time.Now(), admin, auth.NewKeyRequest{Name: "x", Scopes: []auth.Scope{scope}, Workspace: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, secret)
	}
	for _, c := range []struct {
		link, key, blamed string
		status            int
	}{
		{"abc", "", "link", 404},
		{"nobody", keys[1], "link", 404},
		{"nobodys", "", "link", 409},
		{"abc", "curt_nobodysnobodysnobodysnobodys", "key", 403},
		{"abc", keys[0], "key", 403},
		{"abc", keys[1], "", 202},
	} {
		d := s.page(t, c.status, "POST", "/appeal", encode("link", c.link, "reason", "mine", "key", c.key))
		if c.blamed != "" && d.byID(c.blamed+"-error") == nil || c.key != "" && strings.Contains(d.Body.String(), c.key) {
			t.Errorf("%+v: %s", c, text(d.root))
		}
	}
	apart := newSite(t, func(p *parts) { p.API = false })
	if d := apart.page(t, 200, "GET", "/appeal", ""); d.byID("key") != nil {
		t.Error("keys are asked for where none are taken")
	}
	if !slices.ContainsFunc(s.waiting(t), func(r review.Row) bool { return r.Case.Sources == moderation.FromAppeal }) {
		t.Error("the appeal is not in the queue")
	}
}

// A refused create is appealed with its case, which the page says nothing about.
func TestTheCreatorOfARefusedLinkAppeals(t *testing.T) {
	s := newSite(t)
	id := s.desk.Refer(t.Context(), time.Now(), []moderation.BlockedCreate{{Workspace: link.WorkspaceAnonymous, URL: "https://secret.example/", Host: "secret.example", Score: 95, Count: 1}})[0]
	d := s.page(t, http.StatusOK, "GET", "/appeal?case="+id.String(), "")
	if d.byID("link") != nil || !strings.Contains(text(d.root), id.String()) || strings.Contains(text(d.root), "secret") {
		t.Errorf("the form says %s", text(d.root))
	}
	for name, id := range map[string]string{"no case": "x", "another": link.ID{6: 0x70, 8: 0x80}.String()} {
		if d := s.page(t, http.StatusNotFound, "POST", "/appeal", encode("case", id, "reason", "mine")); !strings.Contains(text(d.root), "Case not found") {
			t.Errorf("%s: %s", name, text(d.root))
		}
	}
	d = s.page(t, http.StatusAccepted, "POST", "/appeal", encode("case", id.String(), "reason", "mine"))
	status, err := url.Parse(attr(d.byID("answer"), "value"))
	if err != nil {
		t.Fatal(err)
	}
	if d := s.page(t, http.StatusConflict, "POST", "/appeal", encode("case", id.String(), "reason", "mine")); !strings.Contains(text(d.root), "already pending") {
		t.Errorf("twice: %s", text(d.root))
	}
	if d := s.page(t, http.StatusOK, "GET", status.RequestURI(), ""); !strings.Contains(text(d.root), "Waiting") {
		t.Errorf("%s", text(d.root))
	}
	if _, err := s.desk.DecideCase(t.Context(), time.Now(), reviewer(), review.CaseRuling{ID: id, Safety: link.Clean, Reason: "fine", Reply: true}); err != nil {
		t.Fatal(err)
	}
	d = s.page(t, http.StatusOK, "GET", status.RequestURI(), "")
	if got := text(d.root); !strings.Contains(got, "You can create the link now.") || !strings.Contains(got, "fine") || strings.Contains(got, "secret") {
		t.Errorf("the answer is %s", got)
	}
}
