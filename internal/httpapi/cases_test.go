package httpapi_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

const signIn = "https://refused.example/sign-in"

// inside returns what is at a path such as results.0.status; nil = nothing.
func inside(tree any, path string) any {
	found, _ := lookUp(tree, path)
	return found
}

// decideCase has a moderator decide about a case.
func (s service) decideCase(t testing.TB, id, body string) map[string]any {
	t.Helper()
	return s.do(t, "admin", http.MethodPost, "/api/v1/cases/"+id+"/decision", body).want(t, http.StatusOK).json(t)
}

func TestARefusedCreateIsAllowedAfterAnAppeal(t *testing.T) {
	s := newService(t)
	id := s.refused(t, "acme", signIn)
	if again := s.refused(t, "acme", signIn); again != id {
		t.Errorf("the same create has another case: %s, %s", id, again)
	}
	if other := s.refused(t, "admin", signIn); other == id {
		t.Error("another workspace has the same case")
	}
	appeal := `{"case":"` + id + `","reason":"our own page"}`
	s.do(t, "", http.MethodPost, appeals, appeal).want(t, http.StatusNotFound)
	s.do(t, "reader", http.MethodPost, appeals, appeal).want(t, http.StatusForbidden)
	s.do(t, "acme", http.MethodPost, appeals, `{"case":"`+id+`","code":"abc","reason":"x"}`).want(t, http.StatusBadRequest)
	s.do(t, "acme", http.MethodPost, appeals, `{"case":"nothing","reason":"x"}`).want(t, http.StatusNotFound)
	s.do(t, "acme", http.MethodPost, appeals, `{"case":"019e830c-2e00-7a51-8c3e-5f0b6d2a9c41","reason":"x"}`).want(t, http.StatusNotFound)
	token, _ := s.do(t, "acme", http.MethodPost, appeals, appeal).want(t, http.StatusAccepted).json(t)["token"].(string)

	if p := s.do(t, "acme", http.MethodPost, appeals, appeal).want(t, http.StatusConflict).problem(t); p["detail"] != "an appeal is already pending" {
		t.Errorf("%v", p)
	}
	list := s.do(t, "admin", http.MethodGet, reviews+"?source=blocked&workspace=acme", "").want(t, http.StatusOK).json(t)
	if got := fmt.Sprintln(inside(list, "reviews.0.case"), inside(list, "reviews.0.host"), inside(list, "reviews.0.short_url"), inside(list, "reviews.0.sources")); got != id+" refused.example  [appeal blocked]\n" {
		t.Errorf("listed %s", got)
	}
	f := s.do(t, "admin", http.MethodGet, "/api/v1/cases/"+id, "").want(t, http.StatusOK).json(t)
	if got := fmt.Sprintln(f["long_url"], f["refused"], f["created_by"], f["score"], inside(f, "appeal.reason"), inside(f, "findings.0.signal")); got != signIn+" 2 acme-key 95 our own page look_alike\n" {
		t.Errorf("the case is %s", got)
	}
	if done := s.decideCase(t, id, `{"safety":"clean","reason":"it is theirs","reply":true}`); done["state"] != "closed" || inside(done, "history.0.action") != "answer" ||
		inside(done, "history.0.entity.kind") != "destination" || strings.Contains(fmt.Sprint(done["history"]), "refused.example") {
		t.Errorf("%v", done)
	}
	a := s.do(t, "", http.MethodGet, appeals+"/"+token, "").want(t, http.StatusOK).json(t)
	if got := fmt.Sprintln(a["case"], a["short_url"], a["state"], a["safety"], a["answer"]); got != id+"  answered clean it is theirs\n" {
		t.Errorf("the appeal is %s", got)
	}
	name, _ := inside(s.do(t, "admin", http.MethodGet, "/api/v1/cases/"+id, "").json(t), "history.0.entity.name").(string)
	for entity, want := range map[string]int{"destination:" + name: http.StatusOK, "destination:" + name[1:len(name)-1]: http.StatusBadRequest} {
		if a := s.do(t, "admin", http.MethodGet, journalPath+"?entity="+entity, "").want(t, want).json(t); want == http.StatusOK && inside(a, "entries.0.entity.name") != name {
			t.Errorf("%s: %v", entity, a)
		}
	}
	if l := s.create(t, "acme", `{"long_url":"`+signIn+`"}`); l["safety"] != "clean" {
		t.Errorf("%v", l)
	}
	s.refused(t, "admin", signIn)                                     // another workspace
	s.refused(t, "acme", signIn+"?other")                             // another URL
	s.decideCase(t, id, `{"safety":"blocked","reason":"it was not"}`) // decided again
	if again := s.refused(t, "acme", signIn); again != id {
		t.Errorf("refused with case %s, want %s", again, id)
	}
	s.decideCase(t, id, `{"safety":"warn","reason":"for all","everyone":true}`)
	for _, who := range []string{"acme", "admin", ""} {
		if l := s.create(t, who, `{"long_url":"`+signIn+`"}`); l["safety"] != "warn" {
			t.Errorf("%s: %v", who, l)
		}
	}
	if strings.Contains(s.log.String(), "refused.example") {
		t.Errorf("logged: %s", s.log)
	}
}

func TestRefusedRowsShareTheCaseOfTheirDestination(t *testing.T) {
	s := newService(t)
	row := func(url string) string { return `{"long_url":"` + url + `"}` }
	body := `{"links":[` + strings.Join([]string{row(signIn), row("https://example.com/"), row(signIn), row(signIn + "/2")}, ",") + `]}`
	for range 2 {
		done := s.do(t, "acme", http.MethodPost, collection+"/bulk", body, "Idempotency-Key: k").want(t, http.StatusMultiStatus).json(t)
		first, second, other := inside(done, "results.0.problem.case"), inside(done, "results.2.problem.case"), inside(done, "results.3.problem.case")
		if first == nil || first != second || other == nil || other == first || inside(done, "results.1.status") == nil {
			t.Errorf("%v", done)
		}
	}
	id := s.refused(t, "acme", signIn)
	if f := s.do(t, "admin", http.MethodGet, "/api/v1/cases/"+id, "").json(t); fmt.Sprint(f["refused"]) != "5" {
		t.Errorf("%v", f)
	}
	// A change to a refused destination has the same case.
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"abc"}`)
	p := s.do(t, "acme", http.MethodPatch, collection+"/abc", row(signIn)).want(t, http.StatusUnprocessableEntity).problem(t)
	if p["case"] != id {
		t.Errorf("%v", p)
	}
}

func TestRefusedCreatesAreBounded(t *testing.T) {
	s := newService(t)
	named := 0
	for i := range 30 {
		body := fmt.Sprintf(`{"links":[{"long_url":"%s/%d"},{"long_url":"%s/%d-b"}]}`, signIn, i, signIn, i)
		a := s.do(t, "acme", http.MethodPost, collection+"/bulk", body)
		if a.StatusCode == http.StatusTooManyRequests {
			break
		}
		done := a.want(t, http.StatusMultiStatus).json(t)
		for row := range 2 {
			if inside(done, "results."+strconv.Itoa(row)+".problem.type") != "/problems/destination-harmful" {
				t.Fatalf("%v", done)
			}
			if inside(done, "results."+strconv.Itoa(row)+".problem.case") != nil {
				named++
			}
		}
	}
	if named != 50 {
		t.Errorf("%d cases of one workspace, want 50", named)
	}
}

// A list that is repeated under its Idempotency-Key creates the links whose destination was allowed since.
func TestARepeatedListFollowsTheDecision(t *testing.T) {
	s := newService(t)
	const body = `{"links":[{"long_url":"` + signIn + `"},{"long_url":"https://example.com/"}]}`
	send := func() (answer, string) {
		a := s.do(t, "acme", http.MethodPost, collection+"/bulk", body, `Idempotency-Key: "k"`).want(t, http.StatusMultiStatus)
		return a, strings.Join(outcomes(t, a), ",")
	}
	first, got := send()
	if got != "422 destination-harmful long_url,201 c000001" {
		t.Fatal(got)
	}
	id, _ := inside(first.json(t), "results.0.problem.case").(string)
	s.decideCase(t, id, `{"safety":"clean","reason":"harmless"}`)
	for range 2 {
		if _, got := send(); got != "201 c000002,201 c000001" {
			t.Error(got)
		}
	}
}
