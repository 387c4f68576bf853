package httpapi_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each answer that carries headers of its own says so in the description.
func TestHeadersAreDescribed(t *testing.T) {
	d := describedBy(t, newService(t))
	always := map[string][]string{
		"401": {"WWW-Authenticate"},
		"429": {"Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"},
		"503": {"Retry-After"},
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			for status, want := range always {
				answer, there := op.Responses[status]
				if !there && status == "429" {
					continue
				}
				if diff := cmp.Diff(want, slices.Sorted(maps.Keys(answer.Headers))); diff != "" {
					t.Errorf("%s %s: headers of %s (-want +described):\n%s", method, path, status, diff)
				}
			}
		}
	}
}

// What is sent is described, but for what every answer has.
func TestSentHeadersAreDescribed(t *testing.T) {
	s := newService(t)
	d := describedBy(t, s)
	body := `{"long_url":"http://example.com","custom_alias":"abc"}`
	for i := range 12 {
		res := s.do(t, "", http.MethodPost, collection, body)
		described := d.Paths[collection]["post"].Responses[map[bool]string{true: "201", false: "429"}[i < 10]].Headers
		for name := range res.Header {
			known := slices.ContainsFunc(slices.Collect(maps.Keys(described)), func(n string) bool { return strings.EqualFold(n, name) })
			if !known && !slices.Contains([]string{"Content-Type", "Content-Length", "Cache-Control", "X-Content-Type-Options"}, name) {
				t.Errorf("%d: %s is sent and not described", res.StatusCode, name)
			}
		}
		body = `{"long_url":"http://example.com"}`
	}
	anonymous := d.Paths[collection]["post"].Responses
	if _, ok := anonymous["421"]; !ok {
		t.Error("421 is not described")
	}
}
