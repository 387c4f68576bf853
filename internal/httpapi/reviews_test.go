package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/ratelimit"
	"curt/internal/review"
)

const (
	reports = "/api/v1/reports"
	appeals = "/api/v1/appeals"
	reviews = "/api/v1/reviews"
)

// decide has a moderator decide about a link.
func (s service) decide(t testing.TB, code, safety string) map[string]any {
	t.Helper()
	body := fmt.Sprintf(`{"decisions":[{"code":%q,"safety":%q,"reason":"as it is"}]}`, code, safety)
	done := s.do(t, "admin", http.MethodPost, reviews+"/decisions", body).want(t, http.StatusMultiStatus).json(t)
	return done["results"].([]any)[0].(map[string]any) //nolint:forcetypeassert // a panic fails the test as well
}

// queue returns the codes of a list of reviews.
func (s service) queue(t testing.TB, query string) (codes []string) {
	t.Helper()
	for range 100 {
		page := s.do(t, "admin", http.MethodGet, reviews+"?"+query, "").want(t, http.StatusOK).json(t)
		for _, r := range page["reviews"].([]any) { //nolint:forcetypeassert // as above
			codes = append(codes, r.(map[string]any)["short_code"].(string)) //nolint:forcetypeassert // as above
		}
		next, more := page["next_cursor"].(string)
		if !more {
			return codes
		}
		query = strings.Split(query, "&cursor=")[0] + "&cursor=" + next
	}
	t.Fatal("a walk without an end")
	return nil
}

func TestReportsAreAnsweredAlike(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"https://evil.example/login","custom_alias":"abc"}`)
	found := s.do(t, "", http.MethodPost, reports, `{"code":"abc","category":"phishing","text":"a\nb","contact":"me@example.com"}`).want(t, http.StatusAccepted)
	missing := s.do(t, "", http.MethodPost, reports, `{"short_url":"https://curt.test/nobody?x#y","category":"phishing"}`).want(t, http.StatusAccepted)
	if len(found.body)+len(missing.body) != 0 || fmt.Sprint(found.Header) != fmt.Sprint(missing.Header) {
		t.Errorf("%v %q, %v %q", found.Header, found.body, missing.Header, missing.body)
	}
	if got := s.queue(t, "limit=1"); len(got) != 1 || got[0] != "abc" {
		t.Errorf("the queue is %v", got)
	}
	f := s.do(t, "admin", http.MethodGet, reviews+"/abc", "").want(t, http.StatusOK).json(t)
	said, _ := f["reported"].([]any)
	if len(said) != 1 || fmt.Sprint(said[0]) != "map[at:2026-06-01T12:00:00Z category:phishing contact:me@example.com erased:false text:a\nb]" ||
		f["host"] != "evil.example" || f["workspace_id"] != "acme" || f["due_at"] != "2026-06-01T12:05:00Z" || f["appeal"] != nil {
		t.Errorf("%v", f)
	}
	if strings.Contains(s.log.String(), "example.com") {
		t.Errorf("logged: %s", s.log)
	}
}

func TestStrangersHaveToWaitAndToPass(t *testing.T) {
	limit := ratelimit.Per(2, time.Minute)
	s := newService(t, func(p *parts) {
		p.limit = &limit
		p.ClientAddr = func(r *http.Request) netip.Addr { return netip.MustParseAddr(r.Header.Get("X-Test-Addr")) }
	})
	from := func(addr string) answer {
		return s.do(t, "", http.MethodPost, reports, `{"code":"abc","category":"spam"}`, "X-Test-Addr: "+addr)
	}
	for range 2 {
		from("192.0.2.1").want(t, http.StatusAccepted)
	}
	refused := from("192.0.2.1").want(t, http.StatusTooManyRequests)
	if kind := refused.problem(t)["type"]; kind != "/problems/rate-limited" || refused.Header.Get("Retry-After") != "30" {
		t.Errorf("%v %v", kind, refused.Header)
	}
	from("192.0.2.2").want(t, http.StatusAccepted)

	closed := newService(t, func(p *parts) { p.Challenge = refusing{} })
	for path, body := range map[string]string{reports: `{"code":"abc","category":"spam"}`, appeals: `{"code":"abc","reason":"mine"}`} {
		if kind := closed.do(t, "", http.MethodPost, path, body).want(t, http.StatusForbidden).problem(t)["type"]; kind != "/problems/challenge-failed" {
			t.Errorf("%s: %v", path, kind)
		}
	}
	closed.do(t, "admin", http.MethodPost, reports, `{"code":"abc","category":"spam"}`).want(t, http.StatusAccepted)
}

// refusing is a Challenge that nobody passes.
type refusing struct{}

func (refusing) Verify(context.Context, *http.Request) error { return review.ErrChallenge }

func TestModeratorsDecideRowByRow(t *testing.T) {
	s := newService(t)
	for _, code := range []string{"one", "two"} {
		s.create(t, "acme", `{"long_url":"https://evil.example/","custom_alias":"`+code+`"}`)
		s.do(t, "", http.MethodPost, reports, `{"code":"`+code+`","category":"spam"}`).want(t, http.StatusAccepted)
	}
	done := s.do(t, "admin", http.MethodPost, reviews+"/decisions", `{"decisions":[
		{"code":"one","safety":"blocked","reason":"harmful"},{"code":"nobody","safety":"clean","reason":"x"},{"code":"two","safety":"limbo","reason":"x"},
		{"code":"two","safety":"clean","reason":" "},{"code":"one","domain":"evil.example","safety":"clean","reason":"x"},{"code":"a/b","safety":"clean","reason":"x"}]}`)
	results, _ := done.want(t, http.StatusMultiStatus).json(t)["results"].([]any)
	for i, want := range []string{
		"200 true blocked <nil>", "404 false <nil> /problems/not-found", "400 false <nil> /problems/invalid-request",
		"400 false <nil> /problems/invalid-request", "404 false <nil> /problems/not-found", "404 false <nil> /problems/not-found",
	} {
		r, _ := results[i].(map[string]any)
		if got := fmt.Sprintf("%v %v %v %v", r["status"], r["closed"], at(r, "link", "safety"), at(r, "problem", "type")); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
	if open, closed := s.queue(t, "limit=1"), s.queue(t, "state=closed"); fmt.Sprint(open, closed) != "[two] [one]" {
		t.Errorf("open %v, closed %v", open, closed)
	}
	if l := s.do(t, "acme", http.MethodGet, collection+"/one", "").json(t); l["safety"] != "blocked" || l["state"] != "blocked" {
		t.Errorf("%v", l)
	}
}

func TestAppealsComeFirstAndAreAnsweredOnce(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"early"}`)
	s.do(t, "", http.MethodPost, reports, `{"code":"early","category":"other"}`)
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"abc"}`)
	s.decide(t, "abc", "blocked")
	s.do(t, "", http.MethodPost, appeals, `{"code":"abc","reason":"mine"}`).want(t, http.StatusNotFound) // it was made with a key
	s.do(t, "reader", http.MethodPost, appeals, `{"code":"abc","reason":"mine"}`).want(t, http.StatusForbidden)
	made := s.do(t, "acme", http.MethodPost, appeals, `{"code":"abc","reason":"mine"}`).want(t, http.StatusAccepted).json(t)
	token, _ := made["token"].(string)
	if made["url"] != "https://curt.test/appeal?token="+token {
		t.Errorf("%v", made)
	}
	if kind := s.do(t, "acme", http.MethodPost, appeals, `{"code":"abc","reason":"mine"}`).want(t, http.StatusConflict).problem(t)["type"]; kind != "/problems/appeal-open" {
		t.Errorf("twice: %v", kind)
	}
	if got := fmt.Sprint(s.queue(t, "")); got != "[abc early]" {
		t.Errorf("the queue is %s", got)
	}
	s.do(t, "admin", http.MethodPost, reviews+"/abc/answer", `{"safety":"warn","answer":"Visitors are warned from now on."}`).want(t, http.StatusOK)
	for _, a := range []answer{
		s.do(t, "", http.MethodGet, appeals+"/"+token, ""), s.do(t, "reader", http.MethodGet, collection+"/abc/appeal", ""),
	} {
		got := a.want(t, http.StatusOK).json(t)
		if got["state"] != "answered" || got["safety"] != "warn" || got["answer"] != "Visitors are warned from now on." || got["reason"] != nil {
			t.Errorf("%v", got)
		}
	}
	for path, want := range map[string]string{reviews + "/abc/answer": "/problems/appeal-answered", appeals: "/problems/appeal-answered"} {
		body := `{"safety":"clean","answer":"x"}`
		if path == appeals {
			body = `{"code":"abc","reason":"again"}`
		}
		if kind := s.do(t, "admin", http.MethodPost, path, body).want(t, http.StatusConflict).problem(t)["type"]; kind != want {
			t.Errorf("%s: %v", path, kind)
		}
	}
	ban := s.do(t, "admin", http.MethodPost, "/api/v1/bans", `{"kind":"host","name":"example.com","safety":"quarantined","reason":"x"}`).want(t, http.StatusCreated).json(t)
	if held := s.decide(t, "abc", "warn"); at(held, "held_by", "name") != "example.com" || at(held, "link", "safety") != "quarantined" {
		t.Errorf("under a ban: %v", held)
	}
	if got := s.do(t, "", http.MethodGet, appeals+"/"+token, "").want(t, http.StatusOK).json(t); got["safety"] != "warn" || got["link_safety"] != "quarantined" || got["banned"] != true {
		t.Errorf("the owner of a banned link reads %v", got)
	}
	s.do(t, "admin", http.MethodDelete, fmt.Sprintf("/api/v1/bans/%v", ban["sequence"]), "").want(t, http.StatusNoContent)
	s.decide(t, "abc", "clean")
	if kind := s.do(t, "acme", http.MethodPost, appeals, `{"code":"abc","reason":"again"}`).want(t, http.StatusConflict).problem(t)["type"]; kind != "/problems/nothing-to-appeal" {
		t.Errorf("of a clean link: %v", kind)
	}
	s.do(t, "admin", http.MethodDelete, reviews+"/abc/texts", "").want(t, http.StatusNoContent)
	if got := s.do(t, "", http.MethodGet, appeals+"/"+token, "").want(t, http.StatusOK).json(t); got["answer"] != nil || got["safety"] != "warn" {
		t.Errorf("erased: %v", got)
	}
}

func TestTheQueueIsFiltered(t *testing.T) {
	s := newService(t)
	for i, host := range []string{"a.example", "b.example", "a.example"} {
		code := fmt.Sprintf("link-%d", i)
		s.create(t, []string{"acme", "admin", "acme"}[i], `{"long_url":"https://`+host+`/","custom_alias":"`+code+`"}`)
		category := []string{"spam", "malware", "spam"}[i]
		for range i + 1 {
			s.do(t, "", http.MethodPost, reports, `{"code":"`+code+`","category":"`+category+`"}`).want(t, http.StatusAccepted)
		}
	}
	for query, want := range map[string]string{
		"sort=-reports&limit=2": "[link-2 link-1 link-0]", "category=spam": "[link-0 link-2]", "category=phishing": "[]", "host=B.EXAMPLE": "[link-1]", "source=policy": "[]",
		"source=report&workspace=acme": "[link-0 link-2]", "min_score=1": "[]", "overdue=true": "[]", "state=closed": "[]", "sort=-opened_at&limit=1&category=spam": "[link-0 link-2]",
	} {
		if got := fmt.Sprint(s.queue(t, query)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	page := s.do(t, "admin", http.MethodGet, reviews+"?limit=1", "").json(t)
	cursor := fmt.Sprint(page["next_cursor"])
	s.do(t, "admin", http.MethodGet, reviews+"?limit=1&sort=-score&cursor="+cursor, "").want(t, http.StatusBadRequest)
}

func TestAModeratorSeesWhatThePolicySaw(t *testing.T) {
	s := newService(t)
	made := s.create(t, "acme", `{"long_url":"https://evil.example/","custom_alias":"abc","title":"<b>x"}`)
	id, err := link.ParseID(made["id"].(string)) //nolint:forcetypeassert // a panic fails the test as well
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.journal.Append(t.Context(), moderation.Entry{
		At: noon(), Entity: moderation.OfLink(link.Key{Code: "abc"}), Link: id, Action: moderation.ActionDecide, Safety: link.Warn, Score: 65, Actor: moderation.ActorPolicy,
		Evidence: moderation.Commit(`[{"signal":"look_alike","points":65,"evidence":"reads like <script>"}]`, [16]byte{1}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.do(t, "", http.MethodPost, reports, `{"code":"abc","category":"spam"}`).want(t, http.StatusAccepted)
	f := s.do(t, "admin", http.MethodGet, reviews+"/abc", "").want(t, http.StatusOK).json(t)
	if got := fmt.Sprint(f["findings"]); got != "[map[evidence:reads like <script> points:65 signal:look_alike]]" {
		t.Errorf("findings %s", got)
	}
	if h, _ := f["history"].([]any); len(h) != 1 || at(h[0], "safety") != "warn" || at(f, "link", "title") != "<b>x" {
		t.Errorf("%v", f)
	}
	for _, who := range []string{"acme", "reader"} {
		s.do(t, who, http.MethodGet, reviews+"/abc", "").want(t, http.StatusForbidden)
	}
}
