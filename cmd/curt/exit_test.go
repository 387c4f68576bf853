package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"curt/internal/cli"
	"curt/internal/redirect"
)

// TestAServerWithoutAnAPI: whoever asks a server that only follows links is told that, and
// whoever asks for a link that is not there is not.
func TestAServerWithoutAnAPI(t *testing.T) {
	for title, want := range map[string]bool{redirect.NotFound.Title(): true, "No such link": false} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"type":"/problems/not-found","title":"` + title + `","status":404,"detail":"nowhere"}`))
		}))
		for _, args := range [][]string{{"shorten", "https://example.com/"}, {"stats", "code"}} {
			var out, wrong bytes.Buffer
			code := run(t.Context(), append(args, "--server", s.URL), cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &wrong})
			if code != cli.ExitFailed || strings.Contains(wrong.String(), "but no API") != want || strings.Count(wrong.String(), "\n") != 1 {
				t.Errorf("%s, %v: %d %q", title, args, code, wrong.String())
			}
		}
		s.Close()
	}
}

// TestARedirectIsTold: the key goes nowhere else, and the line says where to.
func TestARedirectIsTold(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusPermanentRedirect)
	}))
	defer s.Close()
	for _, args := range [][]string{{"shorten", "https://example.com/"}, {"stats", "code"}} {
		var out, wrong bytes.Buffer
		code := run(t.Context(), append(args, "--server", s.URL), cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &wrong})
		told := wrong.String()
		if code != cli.ExitConfig || !strings.Contains(told, elsewhere.URL) || !strings.Contains(told, "CURT_SERVER") || strings.Count(told, "\n") != 1 {
			t.Errorf("%v: %d %q", args, code, told)
		}
	}
}
