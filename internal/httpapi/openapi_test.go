package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/analytics"
	"curt/internal/testkit"
)

// document is what the API says about itself.
type document struct {
	OpenAPI    string                          `json:"openapi"`
	Paths      map[string]map[string]described `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type described struct {
	OperationID string `json:"operationId"`
	Parameters  []struct {
		Name, In string
		Schema   schema
	} `json:"parameters"`
	RequestBody struct {
		Content map[string]struct{ Schema schema } `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Headers map[string]struct{ Schema schema } `json:"headers"`
		Content map[string]struct{ Schema schema } `json:"content"`
	} `json:"responses"`
}

type schema struct {
	Ref                  string            `json:"$ref"`
	Type                 any               `json:"type"`
	Enum                 []any             `json:"enum"`
	Default              any               `json:"default"`
	Properties           map[string]schema `json:"properties"`
	Required             []string          `json:"required"`
	AdditionalProperties any               `json:"additionalProperties"`
	MaxLength            int               `json:"maxLength"`
	Items                *schema           `json:"items"`
	AnyOf                []schema          `json:"anyOf"`
}

func describedBy(t *testing.T, s service) document {
	t.Helper()
	got := s.do(t, "", http.MethodGet, "/api/openapi.json", "").want(t, http.StatusOK)
	var d document
	if err := json.Unmarshal(got.body, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// resolve follows a reference, also one that may be null.
func (d document) resolve(t *testing.T, s schema) schema {
	t.Helper()
	if len(s.AnyOf) == 2 && s.AnyOf[1].Type == "null" {
		named := d.resolve(t, s.AnyOf[0])
		named.Type, named.Enum = []any{named.Type, "null"}, append(slices.Clone(named.Enum), nil)
		return named
	}
	if s.Ref == "" {
		return s
	}
	resolved, ok := d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	if !ok {
		t.Fatalf("reference %s leads nowhere", s.Ref)
	}
	return resolved
}

func TestDescriptionNamesEveryOperation(t *testing.T) {
	testkit.Unraced(t)
	d := describedBy(t, newService(t))
	if d.OpenAPI != "3.1.0" {
		t.Errorf("OpenAPI %s", d.OpenAPI)
	}
	got := map[string]string{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			got[method+" "+path] = op.OperationID
		}
	}
	want := map[string]string{
		"post /api/v1/links": "create-link", "post /api/v1/links/bulk": "create-links", "get /api/v1/links": "list-links", "get /api/v1/links/{code}": "get-link",
		"patch /api/v1/links/{code}": "change-link", "delete /api/v1/links/{code}": "delete-link", "get /api/v1/links/{code}/stats": "link-stats",
		"get /api/v1/links/{code}/clicks": "link-clicks", "get /api/v1/links/{code}/qr": "link-qr", "get /api/v1/aliases/{alias}": "check-alias", "get /api/v1/aliases/{alias}/qr": "alias-qr",
		"post /api/v1/aliases/{alias}/reservations": "reserve-alias", "delete /api/v1/aliases/{alias}/reservations": "release-alias",
		"get /api/v1/links/{code}/clicks/live": "live-clicks", "get /api/v1/clicks/live": "live-workspace-clicks",
		"get /api/v1/stats": "workspace-stats", "get /api/v1/stats/links": "links-series",
		"post /api/v1/links/{code}/share": "share-stats", "delete /api/v1/links/{code}/share": "unshare-stats",
		"get /api/v1/keys/self": "get-self", "get /api/v1/health": "get-health",
		"post /api/v1/jobs": "create-job", "get /api/v1/jobs": "list-jobs", "get /api/v1/jobs/{id}": "get-job",
		"put /api/v1/jobs/{id}/input": "send-job-input", "get /api/v1/jobs/{id}/result": "job-result",
		"post /api/v1/jobs/{id}/cancel": "cancel-job", "delete /api/v1/jobs/{id}": "delete-job",
		"post /api/v1/keys": "create-key", "get /api/v1/keys": "list-keys", "get /api/v1/keys/{id}": "get-key",
		"delete /api/v1/keys/{id}": "revoke-key", "post /api/v1/keys/{id}/rotate": "rotate-key",
		"get /api/v1/links/{code}/safety": "link-safety", "put /api/v1/links/{code}/safety": "decide-link",
		"post /api/v1/bans": "create-ban", "post /api/v1/bans/preview": "preview-ban", "get /api/v1/bans": "list-bans",
		"get /api/v1/cases/{case}": "get-case", "delete /api/v1/cases/{case}": "erase-case", "post /api/v1/cases/{case}/decision": "decide-case",
		"delete /api/v1/bans/{sequence}": "lift-ban", "get /api/v1/journal": "list-journal",
		"post /api/v1/journal/{sequence}/erase": "erase-entry", "post /api/v1/journal/rebuild": "rebuild-links",
		"get /api/v1/lists": "get-lists", "get /api/v1/lists/{list}/entries": "list-list-entries", "post /api/v1/lists/{list}/entries": "add-list-entry",
		"delete /api/v1/lists/{list}/entries/{value}": "remove-list-entry", "get /api/v1/lists/{list}/builtin": "list-builtin-entries",
		"post /api/v1/lists/{list}/import": "import-list", "get /api/v1/lists/{list}/export": "export-list",
		"post /api/v1/reports": "report-link", "post /api/v1/appeals": "appeal", "get /api/v1/appeals/{token}": "get-appeal",
		"get /api/v1/links/{code}/appeal": "link-appeal", "get /api/v1/reviews": "list-reviews", "get /api/v1/reviews/{code}": "get-review",
		"delete /api/v1/reviews/{code}/texts": "erase-reports", "post /api/v1/reviews/decisions": "decide-reviews",
		"post /api/v1/reviews/{code}/answer": "answer-appeal",
	}
	for path, name := range map[string]string{"/api/v1/urls": "urls", "/shorten": "shorten", "/v1/urls": "v1-urls", "/v1/links": "v1-links"} {
		want["post "+path], want["delete "+path+"/{code}"], want["get "+path+"/{code}/stats"] = name+"-create", name+"-delete", name+"-stats"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

func TestDescriptionIsTheSameEachTime(t *testing.T) {
	testkit.Unraced(t)
	first := newService(t).do(t, "", http.MethodGet, "/api/openapi.json", "")
	second := newService(t).do(t, "", http.MethodGet, "/api/openapi.json", "")
	if diff := cmp.Diff(string(first.body), string(second.body)); diff != "" {
		t.Error(diff)
	}
}

func TestBodiesAreDescribedAsTheyAreRead(t *testing.T) {
	d := describedBy(t, newService(t))
	fields := []string{
		"cacheable", "expires_at", "expires_in", "fallback_url", "forward_query", "long_url", "max_clicks", "noindex",
		"redirect_status", "starts_at", "tags", "title",
	}
	for _, tt := range []struct {
		path, method string
		more         []string
		required     []string
	}{
		{collection, "post", []string{"custom_alias", "dedupe", "domain"}, []string{"long_url"}},
		{collection + "/{code}", "patch", []string{"status"}, nil},
	} {
		body := d.resolve(t, d.Paths[tt.path][tt.method].RequestBody.Content["application/json"].Schema)
		want := slices.Sorted(slices.Values(slices.Concat(fields, tt.more)))
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(body.Properties))); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", tt.method, diff)
		}
		if diff := cmp.Diff(tt.required, body.Required); diff != "" || body.AdditionalProperties != false {
			t.Errorf("%s: additional %v, required (-want +got):\n%s", tt.method, body.AdditionalProperties, diff)
		}
		for name, p := range body.Properties {
			types := fmt.Sprint(d.resolve(t, p).Type)
			if nullable := strings.Contains(types, "null"); nullable == (name == "long_url" || name == "status") {
				t.Errorf("%s: %s is %s", tt.method, name, types)
			}
		}
	}
	create := d.resolve(t, d.Paths[collection]["post"].RequestBody.Content["application/json"].Schema)
	if got := d.resolve(t, create.Properties["redirect_status"]); !slices.Equal(got.Enum, []any{301.0, 302.0, 307.0, 308.0, nil}) {
		t.Errorf("redirect_status: %+v", got)
	}
	if got := create.Properties["tags"]; got.Items == nil || got.Items.MaxLength != 64 {
		t.Errorf("tags: %+v", got)
	}
}

func TestAnswersHaveTheDescribedFields(t *testing.T) {
	s := newService(t)
	s.stats.series = []analytics.Point{{Start: noon()}}
	d := describedBy(t, s)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.create(t, "admin", `{"long_url":"http://example.com"}`)
	answers := func(method, path, status string) schema {
		return d.Paths[path][method].Responses[status].Content["application/json"].Schema
	}
	for target, want := range map[string]schema{
		collection + "/abc":       answers("get", collection+"/{code}", "200"),
		collection + "/abc/stats": answers("get", collection+"/{code}/stats", "200"),
		collection + "?limit=1":   answers("get", collection, "200"),
	} {
		d.check(t, target, want, s.do(t, "admin", http.MethodGet, target, "").want(t, http.StatusOK).json(t))
	}
}

// check compares a value with its description, all the way down.
func (d document) check(t *testing.T, where string, want schema, got any) {
	t.Helper()
	want = d.resolve(t, want)
	types := fmt.Sprint(want.Type)
	switch v := got.(type) {
	case map[string]any:
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want.Properties)), slices.Sorted(maps.Keys(v))); diff != "" {
			t.Errorf("%s: members (-described +answered):\n%s", where, diff)
		}
		for name, member := range v {
			d.check(t, where+"."+name, want.Properties[name], member)
		}
	case []any:
		if want.Items == nil {
			t.Fatalf("%s: an array where %s is described", where, types)
		}
		for _, item := range v {
			d.check(t, where+"[]", *want.Items, item)
		}
	default:
		name := map[string]string{"<nil>": "null", "string": "string", "float64": "integer", "bool": "boolean"}[fmt.Sprintf("%T", got)]
		if !strings.Contains(types, name) {
			t.Errorf("%s: %v where %s is described", where, got, types)
		}
		if len(want.Enum) > 0 && !slices.Contains(want.Enum, got) {
			t.Errorf("%s: %v is none of %v", where, got, want.Enum)
		}
	}
}

// Every status that an operation answered to the hostile requests is in its
// description.
func TestHostileAnswersAreDescribed(t *testing.T) {
	testkit.Unraced(t)
	s := newService(t)
	d := describedBy(t, s)
	s.create(t, "admin", `{"long_url":"http://example.com/victim","custom_alias":"victim"}`)
	mux := http.NewServeMux()
	for path, methods := range d.Paths {
		for method := range methods {
			mux.Handle(strings.ToUpper(method)+" "+path, http.NotFoundHandler())
		}
	}
	server := httptest.NewServer(s)
	defer server.Close()
	seen := map[string]bool{}
	for _, h := range everyHostile() {
		res, _ := exchange(t, server.Listener.Addr().String(), h)
		if res == nil || res.StatusCode == http.StatusMethodNotAllowed || strings.Contains(h.path, "%zz") ||
			strings.Contains(h.path, "//") || strings.Contains(h.path, "/.") { // the test's own mux would clean them
			continue
		}
		_ = res.Body.Close()
		method := h.method
		if method == "" {
			method = http.MethodPost
		}
		r := httptest.NewRequestWithContext(t.Context(), method, "http://curt.test"+collection, http.NoBody)
		if h.path != "" {
			r = httptest.NewRequestWithContext(t.Context(), method, "http://curt.test"+h.path, http.NoBody)
		}
		_, pattern := mux.Handler(r)
		_, path, found := strings.Cut(pattern, " ")
		if !found {
			continue
		}
		status := fmt.Sprint(res.StatusCode)
		if _, ok := d.Paths[path][strings.ToLower(method)].Responses[status]; !ok {
			t.Errorf("%s: %s answered %s, which is not described", h.name, pattern, status)
		}
		seen[status] = true
	}
	for _, status := range []string{"400", "401", "403", "404", "409", "412", "413", "415"} {
		if !seen[status] {
			t.Errorf("no request was answered %s", status)
		}
	}
}
