package queued_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestServersThatShareRedisAgreeOnPendingLinks: no writer runs. The API of each server says the same of a pending link, and bans hold for it at
// each, also at one that has no API.
func TestServersThatShareRedisAgreeOnPendingLinks(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 1, database(t), "CURT_CACHE="+testkit.StartRedis(t).URL(), "CURT_UNKNOWN_LIMIT=off")
	here, there, visits := p.start(t, "redirect,api", t.TempDir()), p.start(t, "redirect,api", t.TempDir()), p.start(t, "redirect", t.TempDir())
	owner, stranger := newAuthor(t, here, "owner"), newAuthor(t, here, "stranger")
	const to = "https://sub.banned.example/x"
	made := accepted(t, here, owner.Secret, "/api/v1/links", `{"long_url":"`+to+`","title":"kept"}`)
	if made.Status != 202 {
		t.Fatalf("create: %d %q", made.Status, made.Body)
	}
	path := "/api/v1/links/" + made.Link.Code
	for where, s := range map[string]*curttest.Server{"where it was accepted": here, "elsewhere": there} {
		soon(t, where+" GET shows it", func() bool { // a busy Redis answers 503
			a := callWith(t, s, owner.Secret, "GET", path, "")
			return a.Status == 200 && a.Link.State == "pending" && a.Link.ID == made.Link.ID && a.Link.URL == to && strings.Contains(string(a.Body), `"kept"`)
		})
		for method, body := range map[string]string{"PATCH": `{"title":"x"}`, "DELETE": "", "GET": ""} {
			if a := settled(t, s, stranger.Secret, method, path, body); a.Status != 404 {
				t.Errorf("%s: %s by another workspace: %d %q", where, method, a.Status, a.Body)
			}
		}
		ban := `{"kind":"link","name":"` + made.Link.Code + `","reason":"test"}`
		for _, request := range [][3]string{
			{"PATCH", path, `{"title":"x"}`},
			{"DELETE", path, ""},
			{"PUT", path + "/safety", `{"safety":"blocked","reason":"test"}`},
			{"POST", "/api/v1/bans", ban},
		} {
			a := settled(t, s, curttest.Key, request[0], request[1], request[2])
			if after, _ := a.Get("Retry-After"); a.Status != 409 || a.Link.Type != "/problems/link-pending" || after == "" {
				t.Errorf("%s: %s %s: %d %q, Retry-After %q", where, request[0], request[1], a.Status, a.Body, after)
			}
		}
		if a := settled(t, s, curttest.Key, "PUT", "/api/v1/links/no-such-link/safety", `{"safety":"blocked","reason":"test"}`); a.Status != 404 {
			t.Errorf("%s: a decision about no link: %d %q", where, a.Status, a.Body)
		}
	}
	everywhere := func(what string, want int) {
		t.Helper()
		for where, s := range map[string]*curttest.Server{"where it was accepted": here, "elsewhere": there, "without an API": visits} {
			soon(t, what+" "+where, func() bool { status, _, _ := visit(t, s, made.Link.Code); return status == want })
		}
	}
	everywhere("the link redirects", 302)
	for kind, name := range map[string]string{"host": "sub.banned.example", "domain": "banned.example", "workspace": owner.Workspace, "key": owner.ID} {
		a := call(t, there, "POST", "/api/v1/bans", `{"kind":"`+kind+`","name":"`+name+`","reason":"test"}`)
		var ban struct {
			Sequence uint64 `json:"sequence"`
		}
		if err := json.Unmarshal(a.Body, &ban); err != nil || a.Status != 201 {
			t.Fatalf("ban of %s: %d %q", kind, a.Status, a.Body)
		}
		everywhere("the ban of its "+kind+" holds", 403)
		lifted := call(t, here, "DELETE", "/api/v1/bans/"+strconv.FormatUint(ban.Sequence, 10)+"?reason=test", "")
		if lifted.Status/100 != 2 {
			t.Fatalf("lift: %d %q", lifted.Status, lifted.Body)
		}
		everywhere("the link redirects again", 302)
	}
}

// TestARedisThatDoesNotAnswerLeavesOpenWhetherALinkIsPending: a code that may have been issued is 503 at other servers, not 404.
func TestARedisThatDoesNotAnswerLeavesOpenWhetherALinkIsPending(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	redis := testkit.StartRedis(t)
	p := build(t, 1, database(t), "CURT_CACHE="+redis.URL(), "CURT_UNKNOWN_LIMIT=off")
	here, there, visits := p.start(t, "redirect,api", t.TempDir()), p.start(t, "redirect,api", t.TempDir()), p.start(t, "redirect", t.TempDir())
	made := accepted(t, here, curttest.Key, "/api/v1/links", `{"long_url":"https://example.com/hidden"}`)
	if made.Status != 202 {
		t.Fatalf("create: %d %q", made.Status, made.Body)
	}
	if err := syscall.Kill(redis.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for where, s := range map[string]*curttest.Server{"with an API": there, "without": visits} {
		for range 20 {
			c := s.MustDial(t)
			a, err := c.Do("GET", "/"+made.Link.Code, nil, "")
			c.Close()
			if err != nil {
				t.Fatal(err)
			}
			if after, _ := a.Get("Retry-After"); a.Status != 503 || after == "" {
				t.Fatalf("%s: a visit is %d, Retry-After %q, while Redis does not answer", where, a.Status, after)
			}
		}
		soon(t, where+" a code that was never issued is 404", func() bool { status, _, _ := visit(t, s, "never-issued"); return status == 404 })
	}
	for method, body := range map[string]string{"GET": "", "PATCH": `{"title":"x"}`, "DELETE": ""} {
		if a := call(t, there, method, "/api/v1/links/"+made.Link.Code, body); a.Status != 503 {
			t.Errorf("%s: %d %q while Redis does not answer", method, a.Status, a.Body)
		}
	}
	if status, _, _ := visit(t, here, made.Link.Code); status != 302 {
		t.Errorf("where it was accepted: %d", status)
	}
	if err := syscall.Kill(redis.Pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	soon(t, "it redirects elsewhere", func() bool { status, _, _ := visit(t, there, made.Link.Code); return status == 302 })
}
