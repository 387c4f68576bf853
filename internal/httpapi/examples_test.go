package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"curt/internal/analytics"
	"curt/internal/clicks"
	"curt/internal/clicks/history"
	"curt/internal/clicks/rollup"
	"curt/internal/job"
	"curt/internal/link"
	"curt/internal/testkit"
)

const recordedExamples = "apidocs/examples.json"

// recordedAnswer is what an example was answered.
type recordedAnswer struct {
	Status int `json:"status"`
	Answer any `json:"answer,omitempty"`
}

// documented is the description as a tree, with a compiler of its schemas.
type documented struct {
	tree    map[string]any
	schemas *jsonschema.Compiler
}

func newDocumented(t *testing.T, s service) documented {
	t.Helper()
	text := s.do(t, "", http.MethodGet, "/api/openapi.json", "").want(t, http.StatusOK).body
	tree, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("openapi.json", tree); err != nil {
		t.Fatal(err)
	}
	return documented{tree.(map[string]any), c} //nolint:forcetypeassert // a panic fails the test as well
}

// at walks down the tree; nil when there is nothing.
func at(tree any, path ...string) any {
	for _, name := range path {
		m, _ := tree.(map[string]any)
		tree = m[name]
	}
	return tree
}

// validate compares a value with the schema at a place of the description.
func (d documented) validate(t *testing.T, what string, value any, path ...string) {
	t.Helper()
	pointer := ""
	for _, name := range path {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	schema, err := d.schemas.Compile("openapi.json#" + (&url.URL{Path: pointer}).EscapedPath())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s is not as described: %v", what, err)
	}
}

// TestWhatIsNotDescribedIsFound is the control of validate.
func TestWhatIsNotDescribedIsFound(t *testing.T) {
	s, _ := exampleService(t)
	d := newDocumented(t, s)
	schema, err := d.schemas.Compile("openapi.json#/components/schemas/Link")
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(map[string]any){
		"nothing":         func(map[string]any) {},
		"a new member":    func(l map[string]any) { l["surprise"] = 1 },
		"a missing one":   func(l map[string]any) { delete(l, "id") },
		"another type":    func(l map[string]any) { l["title"] = 5 },
		"no date":         func(l map[string]any) { l["created_at"] = "yesterday" },
		"an unknown word": func(l map[string]any) { l["state"] = "limbo" },
	} {
		l := s.do(t, "admin", http.MethodGet, collection+"/manual", "").want(t, http.StatusOK).json(t)
		spoil(l)
		if err := schema.Validate(l); (err == nil) != (name == "nothing") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// exampleOf is one example of the description.
type exampleOf struct {
	path, method, id, name string
	target                 string
	headers                []string
	given                  map[string]any // parameters
	body                   any            // nil = none
}

// examples lists every example request of the description.
func (d documented) examples(t *testing.T) (all []exampleOf) {
	t.Helper()
	paths, _ := at(d.tree, "paths").(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for method, op := range paths[path].(map[string]any) { //nolint:forcetypeassert // a panic fails the test as well
			e := exampleOf{path: path, method: method, target: path, name: "example"}
			e.id, _ = at(op, "operationId").(string)
			e.parameters(op)
			bytes := at(op, "requestBody", "content", "application/octet-stream") != nil
			if bytes {
				e.headers = append(e.headers, "Content-Type: application/octet-stream")
			}
			if at(op, "requestBody") == nil || bytes {
				all = append(all, e)
				continue
			}
			bodies, _ := at(op, "requestBody", "content", "application/json", "examples").(map[string]any)
			if len(bodies) == 0 {
				t.Errorf("%s has a body and no example of it: fill in operation.examples, then `make api`", e.id)
			}
			for name, body := range bodies {
				e.name, e.body = name, at(body, "value")
				all = append(all, e)
			}
		}
	}
	return all
}

// parameters fills in those that have an example.
func (e *exampleOf) parameters(op any) {
	list, _ := at(op, "parameters").([]any)
	query := url.Values{}
	e.given = map[string]any{}
	for _, p := range list {
		value := at(p, "example")
		if value == nil {
			continue
		}
		text, name := fmt.Sprint(value), fmt.Sprint(at(p, "name"))
		e.given[name] = value
		switch at(p, "in") {
		case "path":
			e.target = strings.ReplaceAll(e.target, "{"+name+"}", url.PathEscape(text))
		case "query":
			query.Set(name, text)
		case "header":
			e.headers = append(e.headers, name+": "+text)
		}
	}
	if len(query) > 0 {
		e.target += "?" + query.Encode()
	}
}

// exampleID stands in the description for ids that are drawn anew each time.
const exampleID = "019e830c-2e00-7a51-8c3e-5f0b6d2a9c41"

// exampleService is what the examples are sent to: there is a link "manual" that has
// been clicked, a reserved alias "winter", links under review, a ban of others than us, and a key, whose id is returned.
func exampleService(t *testing.T) (s service, key string) {
	t.Helper()
	s = newService(t, func(p *parts) {
		said, _ := p.Stats.(*stats)
		p.Stats = tops{stats: said, rows: map[clicks.Dimension][]analytics.Row{clicks.Country: {{Value: "DE", Clicks: 30}, {Value: "IN", Clicks: 12}}}}
	})
	s.create(t, "admin", `{"long_url":"https://example.com/docs","custom_alias":"manual","title":"Manual","tags":["docs"]}`)
	s.stats.counts = map[link.Key]uint64{{Code: "manual"}: 42}
	s.stats.totals = analytics.Totals{
		Counts: rollup.Counts{Clicks: 42, Humans: 40, Previews: 3}, VisitorDays: 31, Clicks24h: 7,
		LastClicked: noon().Add(-time.Minute), LastUpdated: noon(), CompleteUntil: noon().Add(-2 * time.Second),
	}
	s.stats.series = []analytics.Point{{Start: noon().Truncate(24 * time.Hour), Clicks: 42, Humans: 40, Visitors: 31}}
	s.past.page = history.Page{Clicks: []clicks.Click{{
		Time: noon().Add(-time.Minute), Outcome: clicks.Redirected, Country: "DE", Device: "mobile", Browser: "Firefox", OS: "Android", Language: "de", ReferrerHost: "example.org", Trigger: "link",
	}}}
	// The link "offer" was reported, held back and appealed for; "sale" was held back.
	for _, code := range []string{"offer", "sale"} {
		s.create(t, "admin", `{"long_url":"https://example.com/`+code+`","custom_alias":"`+code+`"}`)
		s.decide(t, code, "quarantined")
	}
	s.do(t, "admin", http.MethodPost, reports, `{"code":"offer","category":"phishing","text":"It looks like my bank.","contact":"me@example.com"}`).want(t, http.StatusAccepted)
	s.do(t, "admin", http.MethodPost, appeals, `{"code":"offer","reason":"This is our own offer."}`).want(t, http.StatusAccepted)
	s.ban(t, `{"kind":"network","name":"198.51.100.0/24","reason":"floods"}`)
	s.do(t, "admin", http.MethodPost, "/api/v1/lists/refused_words/entries", `{"value":"~casino","reason":"gambling is not allowed here"}`).want(t, http.StatusOK)
	s.job(t, "default", job.Import, false)
	s.do(t, "admin", http.MethodPost, "/api/v1/aliases/winter/reservations", "").want(t, http.StatusCreated)
	made := s.do(t, "admin", http.MethodPost, "/api/v1/keys", `{"name":"CI","scopes":["links:read"]}`).want(t, http.StatusCreated).json(t)
	key, _ = made["id"].(string)
	return s, key
}

// Every example of the description is sent. What it is answered is as described, and
// is what the description shows; with -update it is recorded.
func TestExamplesAreAnsweredAsShown(t *testing.T) {
	testkit.Unraced(t)
	d := newDocumented(t, newService(t))
	got := map[string]map[string]recordedAnswer{}
	for _, e := range d.examples(t) {
		what := e.id + ", " + e.name
		a := e.send(t)
		status := fmt.Sprint(a.StatusCode)
		operation := []string{"paths", e.path, e.method}
		response := at(d.tree, append(operation, "responses", status)...)
		if response == nil {
			t.Errorf("%s: answered %s, which is not described: %s", what, status, a.body)
			continue
		}
		if e.body != nil && a.StatusCode < 300 {
			d.validate(t, what+": the body", e.body, append(operation, "requestBody", "content", "application/json", "schema")...)
		}
		record := recordedAnswer{Status: a.StatusCode}
		if media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";"); len(a.body) > 0 {
			record.Answer = a.value(t, media)
			d.validate(t, what+": the answer", record.Answer, append(operation, "responses", status, "content", media, "schema")...)
		}
		if got[e.id] == nil {
			got[e.id] = map[string]recordedAnswer{}
		}
		got[e.id][e.name] = record
	}
	compareRecorded(t, got)
}

// send sends the example to a service of its own.
func (e exampleOf) send(t *testing.T) answer {
	t.Helper()
	s, id := exampleService(t)
	if strings.Contains(e.path, "/jobs/") {
		id = s.job(t, "default", job.Import, e.id == "send-job-input").String()
	}
	if strings.Contains(e.path, "/cases/") {
		id = s.refused(t, "admin", "https://refused.example/sign-in")
	}
	text := ""
	if e.body != nil {
		b, err := json.Marshal(e.body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	return s.do(t, "admin", strings.ToUpper(e.method), strings.ReplaceAll(e.target, exampleID, id), text, e.headers...)
}

// value reads a body: JSON as what it is, anything else as a string.
func (a answer) value(t *testing.T, media string) any {
	t.Helper()
	text := unchanging(string(a.body))
	if !strings.HasSuffix(media, "json") {
		return text
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// unchanging puts fixed words in the place of those that are drawn anew each time.
func unchanging(text string) string {
	text = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`).ReplaceAllString(text, exampleID)
	text = regexp.MustCompile(`"[0-9a-f]{64}"`).ReplaceAllString(text, `"`+strings.Repeat("c0de", 16)+`"`)
	return regexp.MustCompile(`curt_[A-Za-z0-9_-]{20,}`).ReplaceAllString(text, "curt_ExampleExampleExampleExample")
}

func compareRecorded(t *testing.T, got map[string]map[string]recordedAnswer) {
	t.Helper()
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if update() {
		if err := os.WriteFile(recordedExamples, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	stored, err := os.ReadFile(recordedExamples)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(stored), string(text)); diff != "" {
		t.Errorf("the examples are answered otherwise than the description shows; `make api` records them anew (-shown +answered):\n%s", diff)
	}
}
