package httpapi_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/auth"
	"curt/internal/httpapi"
	"curt/internal/job"
	"curt/internal/link"
	"curt/internal/testkit"
)

const permissions = "../../docs/permissions.md"

// sentBodies are requests that succeed, by route. A new route that changes something
// needs one here; all else about it is derived from what its operation says.
func sentBodies() map[string]string {
	const snake, camel = `{"long_url":"https://example.com/"}`, `{"longUrl":"https://example.com/"}`
	return map[string]string{
		"POST /api/v1/links":              snake,
		"POST /api/v1/links/bulk":         `{"links":[` + snake + `]}`,
		"PATCH /api/v1/links/{code}":      `{"title":"changed"}`,
		"POST /api/v1/urls":               snake,
		"POST /shorten":                   snake,
		"POST /v1/urls":                   snake,
		"POST /v1/links":                  camel,
		"POST /api/v1/links/{code}/share": `{}`,
		"PUT /api/v1/links/{code}/safety": `{"safety":"blocked","reason":"x"}`,
		"POST /api/v1/bans":               `{"kind":"host","name":"evil.example","reason":"x"}`,
		"POST /api/v1/bans/preview":       `{"kind":"host","name":"evil.example"}`,

		"POST /api/v1/journal/{sequence}/erase": `{"reason":"x"}`,

		"POST /api/v1/lists/{list}/entries": `{"value":"word","reason":"x"}`,
		"POST /api/v1/lists/{list}/import":  `{"text":"word","reason":"x"}`,

		"POST /api/v1/reports":               `{"code":"victim","category":"spam"}`,
		"POST /api/v1/appeals":               `{"code":"victim","reason":"mine"}`,
		"POST /api/v1/reviews/decisions":     `{"decisions":[{"code":"victim","safety":"blocked","reason":"x"}]}`,
		"POST /api/v1/reviews/{code}/answer": `{"safety":"clean","answer":"x"}`,

		"POST /api/v1/cases/{case}/decision": `{"safety":"clean","reason":"x"}`,

		"POST /api/v1/jobs":           `{"kind":"{kind}"}`,
		"PUT /api/v1/jobs/{id}/input": "long_url\n",

		"POST /api/v1/keys":             `{"name":"x","scopes":["links:read"]}`,
		"POST /api/v1/keys/{id}/rotate": `{}`,
	}
}

// persona is a column of the table: who asks for what belongs to workspace acme.
type persona struct {
	title     string
	token     string
	anonymous bool // the server lets anybody make links
	scopes    []auth.Scope
	foreign   bool // of another workspace
}

func personas() []persona {
	return []persona{
		{title: "no key", anonymous: true},
		{title: "no key, `CURT_ANONYMOUS=false`"},
		{title: "wrong key", token: "wrong", anonymous: true},
		{title: "`links:read`", token: "read", scopes: []auth.Scope{auth.LinksRead}},
		{title: "`links:write`", token: "write", scopes: []auth.Scope{auth.LinksWrite}},
		{title: "`stats:read`", token: "stats", scopes: []auth.Scope{auth.StatsRead}},
		{title: "other workspace", token: "other", scopes: []auth.Scope{auth.LinksRead, auth.LinksWrite, auth.StatsRead}, foreign: true},
		{title: "`admin`", token: "admin", scopes: []auth.Scope{auth.Admin}},
	}
}

// verdict is the status that an operation's description promises a caller.
func verdict(r httpapi.Route, p persona) int {
	switch {
	case r.Open && len(p.scopes) == 0 && p.token != "":
		return http.StatusUnauthorized
	case r.Owned && (p.token == "" || p.foreign): // the body names a link of acme
		return http.StatusNotFound
	case r.Open && !r.Owned:
		return r.Success
	case p.token == "" && p.anonymous && r.Anonymous:
		return r.Success
	case len(p.scopes) == 0:
		return http.StatusUnauthorized
	case !slices.Contains(p.scopes, r.Scope) && (r.Instead == "" || !slices.Contains(p.scopes, r.Instead)) && !slices.Contains(p.scopes, auth.Admin):
		return http.StatusForbidden
	case p.foreign && releases(r): // what acme has reserved
		return http.StatusNotFound
	case p.foreign && strings.ContainsAny(strings.ReplaceAll(r.Path, "{alias}", ""), "{"): // an alias is nobody's
		return http.StatusNotFound
	}
	return r.Success
}

// releases reports whether a route ends a reservation.
func releases(r httpapi.Route) bool {
	return r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/reservations")
}

// ask sends a request of the route, about a link or a key of acme or a ban, and checks that a
// refusal changed nothing.
func ask(t *testing.T, r httpapi.Route, p persona) answer {
	t.Helper()
	s := newService(t, func(c *parts) {
		if !p.anonymous {
			delete(c.callers, "")
		}
		c.callers["owner"] = c.callers["acme"]
		if len(p.scopes) > 0 && p.token != "admin" {
			workspace := link.WorkspaceID("acme")
			if p.foreign {
				workspace = "rival"
			}
			c.callers[p.token] = auth.Principal{KeyID: "key-of-" + p.token, Workspace: workspace, Scopes: p.scopes}
		}
	})
	s.create(t, "owner", `{"long_url":"https://example.com/secret","custom_alias":"victim"}`)
	id, _ := s.makeKey(t, `{"name":"victim","scopes":["links:read"],"workspace_id":"acme"}`)
	s.do(t, "admin", http.MethodPost, bansPath, `{"kind":"workspace","name":"victim","reason":"secret"}`).want(t, http.StatusCreated)
	route := r.Method + " " + r.Path
	body, known := sentBodies()[route]
	kind := job.Import
	if slices.Equal(p.scopes, []auth.Scope{auth.LinksRead}) {
		kind = job.Export // which such a key may create
	}
	if strings.Contains(r.Path, "/jobs/") {
		id = s.job(t, "acme", kind, strings.HasSuffix(r.Path, "/input")).String()
	}
	alias := "victim"
	if strings.HasSuffix(r.Path, "/reservations") {
		alias = "still-free"
	}
	if releases(r) {
		s.do(t, "owner", http.MethodPost, strings.Replace(r.Path, "{alias}", alias, 1), "").want(t, http.StatusCreated)
	}
	of := ""
	if strings.Contains(r.Path, "/cases/") {
		of = s.refused(t, "owner", "https://refused.example/secret")
	}
	body = strings.Replace(body, "{kind}", string(kind), 1)
	if r.HasBody && !known {
		t.Fatalf("%s: name a body in sentBodies()", route)
	}
	s.suspect(t, route != "POST "+appeals)
	before := s.state(t)
	got := s.do(t, p.token, r.Method, strings.NewReplacer("{code}", "victim", "{alias}", alias, "{id}", id, "{sequence}", "1", "{list}", "refused_words", "{value}", "word", "{token}", firstToken, "{case}", of).Replace(r.Path), body)
	if got.StatusCode >= http.StatusBadRequest {
		if diff := cmp.Diff(before, s.state(t)); diff != "" {
			t.Errorf("%s by %s answered %d and changed:\n%s", route, p.title, got.StatusCode, diff)
		}
	}
	if (p.foreign || len(p.scopes) == 0) && (strings.Contains(string(got.body), "secret") || strings.Contains(string(got.body), id)) {
		t.Errorf("%s by %s tells of what is another's: %s", route, p.title, got.body)
	}
	return got
}

// firstToken is what the first appeal of a service is given: its random bits are all zero.
const firstToken = "AAAAAAAAAAAAAAAAAAAAAA"

// suspect has the link victim held back, and reported, and with appealed an appeal made for it.
func (s service) suspect(t *testing.T, appealed bool) {
	t.Helper()
	s.decide(t, "victim", "quarantined")
	s.do(t, "admin", http.MethodPost, reports, `{"code":"victim","category":"spam","text":"secret"}`).want(t, http.StatusAccepted)
	if appealed {
		s.do(t, "owner", http.MethodPost, appeals, `{"code":"victim","reason":"secret"}`).want(t, http.StatusAccepted)
	}
}

// state is what must not change: the links, the keys, the journal and the queue as the admin sees them.
func (s service) state(t *testing.T) string {
	t.Helper()
	links := s.do(t, "admin", http.MethodGet, collection, "").want(t, http.StatusOK)
	keys := s.do(t, "admin", http.MethodGet, keysPath, "").want(t, http.StatusOK)
	journal := s.do(t, "admin", http.MethodGet, journalPath, "").want(t, http.StatusOK)
	queue := s.do(t, "admin", http.MethodGet, reviews, "").want(t, http.StatusOK)
	jobs := s.do(t, "admin", http.MethodGet, jobsPath, "").want(t, http.StatusOK)
	return string(jobs.body) + string(links.body) + string(keys.body) + string(journal.body) + string(queue.body)
}

// TestPermissions sends every route as everybody. What comes back is what the
// operation's description promises and what docs/permissions.md says.
func TestPermissions(t *testing.T) {
	testkit.Unraced(t)
	routes := httpapi.Routes()
	slices.SortFunc(routes, func(a, b httpapi.Route) int {
		return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
	})
	var page strings.Builder
	page.WriteString("# Permissions\n\n<!-- Written by `make api` from the operations of the API. -->\n\n" + preface)
	page.WriteString("| route | scope |")
	for _, p := range personas() {
		page.WriteString(" " + p.title + " |")
	}
	page.WriteString("\n|---|---|" + strings.Repeat("---|", len(personas())) + "\n")
	for _, r := range routes {
		scope := "–"
		if r.Scope != "" {
			scope = "`" + string(r.Scope) + "`"
		}
		if r.Instead != "" {
			scope += " or `" + string(r.Instead) + "`"
		}
		fmt.Fprintf(&page, "| `%s %s` | %s |", r.Method, r.Path, scope)
		for _, p := range personas() {
			want := verdict(r, p)
			if got := ask(t, r, p); got.StatusCode != want {
				t.Errorf("%s %s by %s: %d, want %d: %s", r.Method, r.Path, p.title, got.StatusCode, want, got.body)
			}
			fmt.Fprintf(&page, " %d |", want)
		}
		page.WriteString("\n")
	}
	if len(routes) < 20 {
		t.Fatalf("found %d routes: the walk is broken", len(routes))
	}
	if update() {
		if err := os.WriteFile(permissions, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	stored, err := os.ReadFile(permissions)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(stored), page.String()); diff != "" {
		t.Errorf("docs/permissions.md is not what the API does; `make api` writes it anew (-committed +found):\n%s", diff)
	}
}

const preface = `Who gets which status for a well-formed request. The link or key in the path belongs
to the workspace ` + "`acme`" + `, as do the keys of the columns with one scope; the key in
"other workspace" has every scope but ` + "`admin`" + `. What another workspace owns does
not exist for a caller: 404, and lists leave it out. Redirects, ` + "`/healthz`" + `, ` + "`/readyz`" + `
and the documents of the API need no key. Jobs that import take ` + "`links:write`" + `, those that export
` + "`links:read`" + `; each key here has a job that it may have.

`
