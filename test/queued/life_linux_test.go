package queued_test

import (
	"strings"
	"testing"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestALinkIsPendingAndThenWritten follows one link from its 202 to the store, without a writer at first: it works on the server that
// accepted it, is unknown elsewhere without being remembered so, and can be read but not changed.
func TestALinkIsPendingAndThenWritten(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 1, database(t))
	here, there := p.start(t, "redirect,api", t.TempDir()), p.start(t, "redirect,api", t.TempDir())

	made := accepted(t, here, curttest.Key, "/api/v1/links", `{"long_url":"https://example.com/a"}`)
	code := made.Link.Code
	if etag, has := made.Get("Etag"); made.Status != 202 || made.Link.State != "pending" || code == "" || has {
		t.Fatalf("create: %d %q, ETag %q", made.Status, made.Body, etag)
	}
	if status, to, _ := visit(t, here, code); status != 302 || to != "https://example.com/a" {
		t.Errorf("the server that accepted the link answers %d %s", status, to)
	}
	if status, _, kept := visit(t, there, code); status != 404 || kept != "no-store" {
		t.Errorf("another server answers %d, Cache-Control %s", status, kept)
	}
	if a := call(t, here, "GET", "/api/v1/links/"+code, ""); a.Status != 200 || a.Link.State != "pending" {
		t.Errorf("get: %d %q", a.Status, a.Body)
	}
	for _, change := range []struct{ method, body string }{{"PATCH", `{"title":"x"}`}, {"DELETE", ""}} {
		a := call(t, here, change.method, "/api/v1/links/"+code, change.body)
		if after, _ := a.Get("Retry-After"); a.Status != 409 || a.Link.Type != "/problems/link-pending" || after == "" || !strings.Contains(string(a.Body), "retry after as many seconds as the Retry-After header says") {
			t.Errorf("%s: %d %q, Retry-After %q", change.method, a.Status, a.Body, after)
		}
	}
	if a := call(t, there, "POST", "/api/v1/links", `{"long_url":"https://example.com/thief","custom_alias":"`+code+`"}`); a.Status != 409 {
		t.Errorf("the code of a pending link as an alias: %d %q", a.Status, a.Body)
	}
	for what, body := range map[string]string{
		"alias": `{"long_url":"https://example.com/a","custom_alias":"at-once"}`, "dedupe": `{"long_url":"https://example.com/b","dedupe":true}`,
		"max_clicks": `{"long_url":"https://example.com/a","max_clicks":3}`,
	} {
		if a := call(t, here, "POST", "/api/v1/links", body); a.Status != 201 || a.Link.State != "live" {
			t.Errorf("%s: %d %q", what, a.Status, a.Body)
		}
	}

	writer := p.start(t, "writer", t.TempDir())
	soon(t, "the link is written", func() bool { return metric(t, here, "curt_pending_links") == 0 })
	soon(t, "it is counted", func() bool { return metric(t, writer, "curt_writer_links_total") > 0 }) // the server may hear of it before
	if n := metric(t, writer, "curt_writer_links_total"); n != 1 {
		t.Errorf("%v links were written", n)
	}
	if a := call(t, here, "GET", "/api/v1/links/"+code, ""); a.Status != 200 || a.Link.State != "live" || a.Link.ID != made.Link.ID {
		t.Errorf("get: %d %q", a.Status, a.Body)
	}
	soon(t, "another server knows the link", func() bool { status, _, _ := visit(t, there, code); return status == 302 })
	if a := call(t, here, "PATCH", "/api/v1/links/"+code, `{"long_url":"https://example.com/z"}`); a.Status != 200 {
		t.Errorf("change: %d %q", a.Status, a.Body)
	}
	if status, to, _ := visit(t, here, code); status != 302 || to != "https://example.com/z" {
		t.Errorf("after a change: %d %s", status, to)
	}
	soon(t, "Prefer: wait has a link that is written", func() bool { // within ten seconds, which may be too few for a busy machine
		a := accepted(t, here, curttest.Key, "/api/v1/links", `{"long_url":"https://example.com/waited"}`, "Prefer: wait")
		if a.Status != 201 && a.Status != 202 || (a.Status == 201) != (a.Link.State == "live") {
			t.Fatalf("Prefer: wait: %d %q", a.Status, a.Body)
		}
		return a.Status == 201
	})
}
