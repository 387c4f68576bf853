package httpapi_test

import (
	"bytes"
	"image/png"
	"net/http"
	"strings"
	"testing"
)

func TestQROfALink(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"abc"}`)
	path := collection + "/abc/qr"
	svg := s.do(t, "acme", http.MethodGet, path, "").want(t, http.StatusOK)
	if !strings.HasPrefix(string(svg.body), "<svg ") || svg.Header.Get("Content-Type") != "image/svg+xml" ||
		!strings.HasPrefix(svg.Header.Get("Content-Security-Policy"), "default-src 'none'") ||
		svg.Header.Get("Cache-Control") != "private, no-cache" || svg.Header.Get("Vary") != "Accept" {
		t.Errorf("%v %.80s", svg.Header, svg.body)
	}
	for _, picture := range []answer{
		s.do(t, "acme", http.MethodGet, path+"?format=png&size=200", ""),
		s.do(t, "acme", http.MethodGet, path+"?size=200", "", "Accept: image/png"),
	} {
		img, err := png.Decode(bytes.NewReader(picture.want(t, http.StatusOK).body))
		if err != nil || img.Bounds().Dx() != 200 {
			t.Errorf("%v", err)
		}
	}
	s.do(t, "acme", http.MethodGet, path, "", "If-None-Match: "+svg.Header.Get("ETag")).want(t, http.StatusNotModified)
	s.do(t, "none", http.MethodGet, path, "", "If-None-Match: "+svg.Header.Get("ETag")).want(t, http.StatusForbidden)
}

func TestQRQueriesAreStrict(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"abc"}`)
	for query, field := range map[string]string{
		"size=1": "size", "size=x": "size", "margin=17": "margin", "level=m": "level", "format=gif": "format", "fg=%23000000": "fg",
		"fg=ffffff": "fg", "bg=000000": "fg", "x=1": "x", "size=100&size=100": "size", "bg=": "bg",
	} {
		got := s.do(t, "acme", http.MethodGet, collection+"/abc/qr?"+query, "").want(t, http.StatusBadRequest).json(t)
		if got["field"] != field || got["type"] != "/problems/invalid-request" {
			t.Errorf("%s: %v", query, got)
		}
	}
}

// An owner may print what begins next month, or is switched off for a while.
func TestQRWhateverTheState(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"abc","starts_at":"2090-01-01T00:00:00Z"}`)
	path := collection + "/abc"
	s.do(t, "acme", http.MethodPatch, path, `{"status":"disabled"}`).want(t, http.StatusOK)
	s.do(t, "acme", http.MethodGet, path+"/qr", "").want(t, http.StatusOK)
	s.do(t, "acme", http.MethodDelete, path, "").want(t, http.StatusNoContent)
	s.do(t, "acme", http.MethodGet, path+"/qr", "").want(t, http.StatusNotFound)
}
