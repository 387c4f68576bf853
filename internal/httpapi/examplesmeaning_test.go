package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// facts say by which members an answer is about what was asked: where in the answer, and
// where in the request the same stands. "'word" is that word, "*" anything but nothing.
type facts map[string]string

// exampleFacts are those of the examples of each operation that answers with a body.
func exampleFacts() map[string]facts {
	snake, camel := facts{"long_url": "body.long_url", "short_url": "body.custom_alias"}, facts{"longUrl": "body.longUrl", "shortUrl": "body.customAlias"}
	link, counted := facts{"short_code": "code", "long_url": "*"}, facts{"total_clicks": "*", "series.0.clicks": "*", "top.country.0.value": "*"}
	return map[string]facts{
		"create-link": {
			"long_url": "body.long_url", "short_code": "body.custom_alias", "max_clicks": "body.max_clicks", "fallback_url": "body.fallback_url",
			"title": "body.title", "tags": "body.tags", "redirect_status": "body.redirect_status", "state": "'live",
		},
		"create-links": {"results.0.link.long_url": "body.links.0.long_url", "results.0.status": "'201", "results.1.problem.status": "'409"},
		"list-links":   {"links.0.short_code": "*", "links.2.short_code": "'manual"},
		"get-link":     link,
		"change-link":  {"short_code": "code", "long_url": "body.long_url", "title": "body.title"},
		"check-alias":  {"alias": "alias", "reason": "*"}, "reserve-alias": {"alias": "alias", "expires_in": "*"},
		"link-qr": {"": "'<svg"}, "alias-qr": {"": "'<svg"},

		"link-stats": {"short_code": "code", "total_clicks": "*", "series.0.clicks": "*", "top.country.0.value": "*"}, "workspace-stats": counted,
		"link-clicks": {"clicks.0.time": "*", "clicks.0.outcome": "'redirected"},
		"live-clicks": {"": "'event: clicks\ndata: {\"clicks\":42}"}, "live-workspace-clicks": {"": "'event: clicks\ndata: {"},
		"links-series": {"series.0.short_code": "'manual", "series.0.clicks": "*"},
		"share-stats":  {"url": "code", "expires_at": "'2026-06-08T12:00:00Z"},

		"create-job": {"kind": "body.kind", "options.tags": "body.options.tags", "options.format": "body.options.format"},
		"list-jobs":  {"jobs.0.id": "*"}, "get-job": {"id": "id", "state": "'done"}, "cancel-job": {"id": "id"},
		"send-job-input": {"id": "id", "uploaded": "offset"}, "job-result": {"": "'{\"line\":2"},

		"create-key": {"name": "body.name", "scopes": "body.scopes", "workspace_id": "body.workspace_id", "expires_at": "body.expires_at", "key": "'curt_"},
		"list-keys":  {"keys.0.id": "*"}, "get-key": {"id": "id", "name": "*"}, "rotate-key": {"id": "id", "key": "'curt_"},
		"get-self": {"key_id": "'admin", "scopes.0": "'admin"},

		"appeal":       {"token": "*", "url": "'https://curt.test/appeal?token="},
		"get-appeal":   {"short_url": "'https://curt.test/offer", "state": "'open"},
		"link-appeal":  {"short_url": "code", "state": "'open"},
		"list-reviews": {"reviews.0.short_code": "'offer", "reviews.0.reports": "*", "reviews.0.state": "'open"},
		"get-review":   {"short_code": "code", "reported.0.text": "*", "appeal.reason": "*", "history.0.action": "*"},
		"decide-reviews": {
			"results.0.link.short_code": "body.decisions.0.code", "results.0.link.safety": "body.decisions.0.safety", "results.1.status": "'404",
		},
		"get-case":      {"case": "case", "long_url": "'https://refused.example/", "findings.0.points": "*", "state": "'open"},
		"decide-case":   {"case": "case", "decision": "body.safety", "state": "'closed", "history.0.reason": "body.reason"},
		"answer-appeal": {"link.short_code": "code", "link.safety": "body.safety", "closed": "'true"},

		"link-safety": {"short_code": "code", "safety": "'clean"},
		"decide-link": {"short_code": "code", "safety": "body.safety", "decision.reason": "body.reason"},
		"create-ban":  {"kind": "body.kind", "name": "body.name", "reason": "body.reason"},
		"preview-ban": {"kind": "body.kind", "name": "body.name", "links": "*", "sample.0.long_url": "'https://example.com/"},
		"list-bans":   {"bans.0.sequence": "*", "bans.0.kind": "'network"}, "list-journal": {"entries.0.sequence": "*"},
		"get-lists": {"lists.0.name": "'refused_words", "lists.0.entries": "*"}, "list-list-entries": {"entries.0.value": "'~casino", "entries.0.added_by": "'admin"},
		"list-builtin-entries": {"entries.0.value": "*"}, "export-list": {"": "'~casino # "},
		"add-list-entry": {"changed": "'1"}, "import-list": {"changed": "'2"}, "remove-list-entry": {"changed": "'1"},
		"erase-entry": {"action": "'erase", "reason": "body.reason"},
		"get-health":  {"status": "'ok", "version": "*", "disk.files.0.bytes": "*"},

		"urls-create": {
			"long_url": "body.long_url", "short_url": "body.custom_alias",
			"longUrl": "body.longUrl", "shortCode": "body.customAlias",
		},
		"shorten-create": snake, "v1-urls-create": {"short_code": "body.custom_alias"}, "v1-links-create": {"shortCode": camel["shortUrl"]},
		"urls-stats": {"total_clicks": "'42", "top_countries.0": "'DE"}, "shorten-stats": {"clicks": "'42", "by_country.DE": "*"},
		"v1-urls-stats": {"clicks": "'42", "by_country.DE": "*"}, "v1-links-stats": {"totalClicks": "'42"},
	}
}

// lookUp follows the names and numbers of a path such as links.0.title.
func lookUp(tree any, path string) (any, bool) {
	if path == "" {
		return tree, true
	}
	for name := range strings.SplitSeq(path, ".") {
		switch v := tree.(type) {
		case map[string]any:
			member, ok := v[name]
			if !ok {
				return nil, false
			}
			tree = member
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return nil, false
			}
			tree = v[i]
		default:
			return nil, false
		}
	}
	return tree, true
}

// fails says what of the facts an answer to the example does not have. Members that the
// request leaves out say nothing; one must be left.
func (f facts) fails(e exampleOf, answer any) error {
	asked := maps.Clone(e.given)
	if asked == nil {
		asked = map[string]any{}
	}
	asked["body"] = e.body
	compared := 0
	for place, source := range f {
		got, there := lookUp(answer, place)
		if literal, ok := strings.CutPrefix(source, "'"); ok {
			if !there || !says(got, literal, strings.HasPrefix) {
				return fmt.Errorf("%q is %v, want %q", place, got, literal)
			}
		} else if source == "*" {
			if !there || reflect.ValueOf(got).IsZero() {
				return fmt.Errorf("%q says nothing", place)
			}
		} else if want, given := lookUp(asked, source); !given {
			continue
		} else if text := fmt.Sprint(want); !there || !says(got, text, quotes) {
			return fmt.Errorf("%q is %v, asked was %v", place, got, want)
		}
		compared++
	}
	if compared == 0 {
		return errors.New("nothing of the answer is about the request: name it in exampleFacts")
	}
	return nil
}

// says reports whether a value is as wanted, or a text that likewise is.
func says(got any, want string, like func(got, want string) bool) bool {
	text, isText := got.(string)
	return fmt.Sprint(got) == want || isText && like(text, want)
}

// quotes reports whether a text is a URL with what was asked in its path, or ends in it as
// "entry 1: reason" does.
func quotes(text, asked string) bool {
	return strings.HasPrefix(text, "https://") && strings.Contains(text, "/"+asked) || strings.HasSuffix(text, ": "+asked)
}

// What the description shows is what somebody wants to see: an answer of success, about
// what the example asks. The answers come from a server: a limit of it, a ban or a missing
// link would stand in the description as what the API says.
func TestExamplesShowWhatWasAskedFor(t *testing.T) {
	text, err := os.ReadFile(recordedExamples)
	if err != nil {
		t.Fatal(err)
	}
	var answered map[string]map[string]recordedAnswer
	if err := json.Unmarshal(text, &answered); err != nil {
		t.Fatal(err)
	}
	d, all, succeeded := newDocumented(t, newService(t)), exampleFacts(), map[string]bool{}
	for _, e := range d.examples(t) {
		what := e.id + ", " + e.name
		status, refused := answered[e.id][e.name].Status, strings.HasPrefix(e.name, "refused")
		if success := 200 <= status && status < 300; success == refused || refused && status >= 500 {
			t.Errorf("%s: answered %d", what, status)
			continue
		}
		succeeded[e.id] = succeeded[e.id] || !refused
		shown, ok := d.shownAnswer(e, status)
		if !ok {
			if answered[e.id][e.name].Answer != nil {
				t.Errorf("%s: the description does not show the answer", what)
			}
			continue
		}
		want := all[e.id]
		if refused {
			want = facts{"field": "'long_url", "detail": "*"}
		}
		if err := want.fails(e, shown); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, op := range d.operationIDs() {
		if !succeeded[op] {
			t.Errorf("%s has no example that succeeds", op)
		}
	}
}

// operationIDs lists every operation.
func (d documented) operationIDs() (all []string) {
	paths, _ := at(d.tree, "paths").(map[string]any)
	for _, path := range paths {
		for _, op := range path.(map[string]any) { //nolint:forcetypeassert // a panic fails the test as well
			all = append(all, fmt.Sprint(at(op, "operationId")))
		}
	}
	return all
}

// shownAnswer is what the description shows for an example.
func (d documented) shownAnswer(e exampleOf, status int) (any, bool) {
	content, _ := at(d.tree, "paths", e.path, e.method, "responses", strconv.Itoa(status), "content").(map[string]any)
	for _, media := range content {
		if value := at(media, "examples", e.name, "value"); value != nil {
			return value, true
		}
	}
	return nil, false
}

// TestSpoiledExamplesAreFound is the control of facts.
func TestSpoiledExamplesAreFound(t *testing.T) {
	var problem, other any
	for text, into := range map[string]*any{
		`{"type":"/problems/banned","title":"Link creation not allowed","status":403,"detail":"no links are made from this network"}`: &problem,
		`{"long_url":"https://example.com/another","short_code":"c000001","state":"live","tags":[],"title":null}`:                     &other,
	} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	e := exampleOf{body: map[string]any{"long_url": "https://example.com/a"}}
	for name, answer := range map[string]any{"a refusal": problem, "another link": other, "nothing": nil} {
		if exampleFacts()["create-link"].fails(e, answer) == nil {
			t.Errorf("%s is taken for what was asked", name)
		}
	}
	if (facts{"title": "body.title"}).fails(e, other) == nil {
		t.Error("facts about nothing hold")
	}
}
