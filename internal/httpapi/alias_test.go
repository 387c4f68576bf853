package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestAliasesThatMayBeHad(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"taken"}`)
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"gone"}`)
	s.do(t, "acme", http.MethodDelete, collection+"/gone", "").want(t, http.StatusNoContent)
	for alias, reason := range map[string]any{
		"free": nil, "Taken": nil, "taken": "taken", "gone": "taken", "api": "reserved", "APP": "reserved",
		"ab": "invalid", strings.Repeat("a", 65): "invalid", "a%20b": "invalid", "a%2Fb": "invalid", "%00%ff": "invalid", "%3Cscript%3E": "invalid",
	} {
		got := s.do(t, "acme", http.MethodGet, "/api/v1/aliases/"+alias, "").want(t, http.StatusOK).json(t)
		if got["reason"] != reason || got["available"] != (reason == nil) || (got["detail"] == nil) != (reason == nil) || (got["short_url"] == nil) != (strings.Contains(alias, "%") || len(alias) > 64) {
			t.Errorf("%s: %v", alias, got)
		}
	}
	got := s.do(t, "acme", http.MethodGet, "/api/v1/aliases/free", "").json(t)
	if got["short_url"] != "https://curt.test/free" || got["domain"] != "curt.test" || got["alias"] != "free" {
		t.Errorf("%v", got)
	}
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"free"}`)
}

func TestAliasQueriesAreStrict(t *testing.T) {
	s := newService(t)
	for query, field := range map[string]string{"domain=evil.example": "domain", "x=1": "x", "domain=": "domain"} {
		got := s.do(t, "acme", http.MethodGet, "/api/v1/aliases/free?"+query, "").want(t, http.StatusBadRequest).json(t)
		if got["field"] != field {
			t.Errorf("%s: %v", query, got)
		}
	}
	s.do(t, "acme", http.MethodGet, "/api/v1/aliases/", "").want(t, http.StatusNotFound)
}

func TestAliasesAreDrawnBeforeTheyAreTaken(t *testing.T) {
	s := newService(t)
	before := s.do(t, "acme", http.MethodGet, "/api/v1/aliases/soon/qr", "").want(t, http.StatusOK)
	if before.Header.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("headers %v", before.Header)
	}
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"soon"}`)
	after := s.do(t, "acme", http.MethodGet, collection+"/soon/qr", "").want(t, http.StatusOK)
	if string(before.body) != string(after.body) || before.Header.Get("Etag") != after.Header.Get("Etag") {
		t.Error("the link has another code than its alias had")
	}
	for path, status := range map[string]int{
		"ab/qr": 400, "a%2Fb/qr": 400, "%3Cscript%3E/qr": 400, "soon/qr?domain=evil.example": 400, "soon/qr?size=1": 400, "soon/qr?x=1": 400, "soon/qr?domain=go.example": 200,
	} {
		s.do(t, "acme", http.MethodGet, "/api/v1/aliases/"+path, "").want(t, status)
	}
}
