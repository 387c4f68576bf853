package queued_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestABulkCreateIsQueued: rows that may wait are 202, others are written at once, and each is a link in the end, also of a repeated request.
func TestABulkCreateIsQueued(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 1, database(t))
	api := p.start(t, "redirect,api", t.TempDir())
	const body = `{"links":[{"long_url":"https://example.com/1"},{"long_url":"https://example.com/2","custom_alias":"at-once"},{"long_url":"https://example.com/3","max_clicks":2},
		{"long_url":"javascript:alert(1)"},{"long_url":"https://example.com/5"}]}`
	want := []int{202, 201, 201, 400, 202}
	var first []string
	for range 2 {
		var made struct {
			Results []struct {
				Status int `json:"status"`
				Link   struct {
					ID    string `json:"id"`
					Code  string `json:"short_code"`
					State string `json:"state"`
				} `json:"link"`
			} `json:"results"`
		}
		a := accepted(t, api, curttest.Key, "/api/v1/links/bulk", body, "Idempotency-Key: bulk")
		if err := json.Unmarshal(a.Body, &made); err != nil || len(made.Results) != len(want) {
			t.Fatalf("%d %q: %v", a.Status, a.Body, err)
		}
		var ids []string
		for i, r := range made.Results {
			if r.Status != want[i] || (r.Link.State == "pending") != (want[i] == 202) {
				t.Errorf("row %d: %+v, want %d", i, r, want[i])
			}
			ids = append(ids, r.Link.ID+r.Link.Code)
		}
		if first == nil {
			first = ids
		}
		if fmt.Sprint(ids) != fmt.Sprint(first) {
			t.Errorf("the same request made %v, and then %v", first, ids)
		}
	}
	p.start(t, "writer", t.TempDir())
	drained(t, api)
	if n := len(api.AllLinks(t)); n != 4 {
		t.Errorf("%d links, want 4", n)
	}
}

// TestARetryOfAPendingLinkIsTheSameLink: at the server that accepted it, at another one, and there after the first is dead. What the policy
// decided about it is in the journal once.
func TestARetryOfAPendingLinkIsTheSameLink(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 1, database(t), "CURT_THRESHOLDS=quarantine=60,block=100")
	here, there := p.start(t, "redirect,api", t.TempDir()), p.start(t, "redirect,api", t.TempDir())
	create := func(what string, a answer, first *answer, status int) {
		t.Helper()
		if a.Status != status || first != nil && (a.Link.ID != first.Link.ID || a.Link.Code != first.Link.Code) {
			t.Errorf("%s: %d %q, want %d", what, a.Status, a.Body, status)
		}
	}
	const body = `{"long_url":"https://paypa1.com/once"}`
	once := func(s *curttest.Server) answer {
		t.Helper()
		return accepted(t, s, curttest.Key, "/api/v1/links", body, "Idempotency-Key: once")
	}
	made := once(here)
	create("first", made, nil, 202)
	create("again", once(here), &made, 202)
	create("elsewhere", once(there), &made, 202)
	if a := call(t, there, "POST", "/api/v1/links", `{"long_url":"https://example.com/other"}`, "Idempotency-Key: once"); a.Status != 422 {
		t.Errorf("another request with the key: %d %q", a.Status, a.Body)
	}
	here.Kill()
	create("after a kill", once(there), &made, 202)
	p.start(t, "writer", t.TempDir())
	drained(t, there)
	soon(t, "it is written", func() bool { return once(there).Status != 202 }) // pending links are counted where they were accepted
	create("written", once(there), &made, 201)
	compare(t, there, map[string]string{"https://paypa1.com/once": made.Link.Code})
	if n := len(there.AllLinks(t)); n != 1 {
		t.Errorf("%d links, want one", n)
	}
	if entries := journal(t, there); len(entries) != 1 || entries[0].LinkID != made.Link.ID || entries[0].Safety != "quarantined" {
		t.Errorf("the journal: %+v, want one decision", entries)
	}
}

// TestOtherServersReadAPendingLinkFromRedis: at once, and its later changes as ever.
func TestOtherServersReadAPendingLinkFromRedis(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 1, database(t), "CURT_CACHE="+testkit.StartRedis(t).URL())
	here, there := p.start(t, "redirect,api", t.TempDir()), p.start(t, "redirect", t.TempDir())
	made := accepted(t, here, curttest.Key, "/api/v1/links", `{"long_url":"https://example.com/shared"}`)
	if made.Status != 202 {
		t.Fatalf("create: %d %q", made.Status, made.Body)
	}
	soon(t, "another server reads the link", func() bool { // a busy Redis answers 503
		status, to, _ := visit(t, there, made.Link.Code)
		if status != 503 && (status != 302 || to != "https://example.com/shared") {
			t.Errorf("another server answers %d %s before the link is written", status, to)
		}
		return status != 503
	})
	p.start(t, "writer", t.TempDir())
	drained(t, here)
	if a := call(t, here, "PATCH", "/api/v1/links/"+made.Link.Code, `{"long_url":"https://example.com/changed"}`); a.Status != 200 {
		t.Errorf("change: %d %q", a.Status, a.Body)
	}
	soon(t, "another server knows the change", func() bool {
		status, to, _ := visit(t, there, made.Link.Code)
		if status != 302 && status != 503 {
			t.Errorf("another server answers %d", status)
		}
		return to == "https://example.com/changed"
	})
}

// TestAListThatGrewWhileALinkWaitedHolds: what a blocklist names by the time at which a link is written is not stored as a live link.
func TestAListThatGrewWhileALinkWaitedHolds(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	list := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(list, []byte("harmful.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := build(t, 1, database(t), "CURT_BLOCKLISTS="+list)
	api := p.start(t, "redirect,api", t.TempDir())
	late := accepted(t, api, curttest.Key, "/api/v1/links", `{"long_url":"https://late.example/"}`)
	good := accepted(t, api, curttest.Key, "/api/v1/links", `{"long_url":"https://good.example/"}`)
	if late.Status != 202 || good.Status != 202 {
		t.Fatalf("create: %d %q, %d %q", late.Status, late.Body, good.Status, good.Body)
	}
	if a := call(t, api, "POST", "/api/v1/links", `{"long_url":"https://harmful.example/"}`); a.Status != 422 {
		t.Errorf("a destination that is listed: %d %q", a.Status, a.Body)
	}
	curttest.Replace(t, list, "harmful.example\nlate.example\n")
	p.start(t, "writer", t.TempDir())
	drained(t, api)
	soon(t, "visitors are not redirected to what is listed now", func() bool { status, _, _ := visit(t, api, late.Link.Code); return status == 403 })
	if a := call(t, api, "GET", "/api/v1/links/"+late.Link.Code, ""); a.Status != 200 || a.Link.State == "live" || a.Link.State == "pending" {
		t.Errorf("the link of what is listed: %d %q", a.Status, a.Body)
	}
	entries := journal(t, api)
	if len(entries) != 1 || entries[0].LinkID != late.Link.ID || entries[0].Action != "decide" || entries[0].Safety != "blocked" || entries[0].Actor != "policy" {
		t.Errorf("the journal has %+v, want one decision about the link of what is listed", entries)
	}
	if status, to, _ := visit(t, api, good.Link.Code); status != 302 || to != "https://good.example/" {
		t.Errorf("the other link: %d %s", status, to)
	}
}

// TestLimitsHoldForQueuedLinks: they are spent when a link is accepted, by a repeated request not again.
func TestLimitsHoldForQueuedLinks(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 1, database(t), "CURT_LIMITS=default=2/h")
	api := p.start(t, "redirect,api", t.TempDir())
	for i, want := range []int{202, 202, 202, 429} {
		body := fmt.Sprintf(`{"long_url":"https://example.com/%d"}`, max(1, i)) // the first two are one request
		if a := accepted(t, api, curttest.Key, "/api/v1/links", body, fmt.Sprintf("Idempotency-Key: limit-%d", max(1, i))); a.Status != want {
			t.Errorf("create %d: %d %q, want %d", i, a.Status, a.Body, want)
		}
	}
	p.start(t, "writer", t.TempDir())
	drained(t, api)
	if n := len(api.AllLinks(t)); n != 2 {
		t.Errorf("%d links, want 2", n)
	}
}
