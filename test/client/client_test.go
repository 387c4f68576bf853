package client_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"curt.example/client"
)

func serve(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := client.New(s.URL+"/", client.WithKey("curt_test"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCreateSendsWhatWasAskedAndReadsTheLink(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if got, want := string(body), `{"long_url":"https://example.com/","custom_alias":"me"}`; got != want {
			t.Errorf("body %s, want %s", got, want)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/links" || r.Header.Get("Authorization") != "Bearer curt_test" {
			t.Errorf("%s %s with %q", r.Method, r.URL.Path, r.Header.Get("Authorization"))
		}
		w.WriteHeader(http.StatusCreated)
		if err := json.NewEncoder(w).Encode(map[string]any{"short_url": "http://x/me", "short_code": "me", "version": 1}); err != nil {
			t.Error(err)
		}
	})
	l, err := c.Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: "me"})
	if err != nil || l.ShortURL != "http://x/me" || l.Version != 1 {
		t.Fatalf("Create = %+v, %v", l, err)
	}
}

func TestProblemsAreExplained(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		if _, err := io.WriteString(w, `{"title":"Too many requests","detail":"wait","status":429}`); err != nil {
			t.Error(err)
		}
	})
	_, err := c.Get(t.Context(), "a/../b")
	var p *client.Problem
	if !errors.As(err, &p) || p.Status != 429 || p.RetryAfter != 7*time.Second || !strings.Contains(err.Error(), "wait") {
		t.Fatalf("got %v", err)
	}
}

func TestAnswersThatAreNotOursAreErrors(t *testing.T) {
	for body, status := range map[string]int{"<html>": 200, "": 502, "null and more": 200} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			if _, err := io.WriteString(w, body); err != nil {
				t.Error(err)
			}
		})
		if _, err := c.Stats(t.Context(), "x", client.StatsQuery{}); err == nil {
			t.Errorf("status %d with body %q: no error", status, body)
		}
	}
}

func TestNoOtherTextIsSentThanWasMeant(t *testing.T) {
	var got map[string]any
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "{}")
	})
	for _, title := range []string{"\ufffd", `\ufffd`, `\\ufffd`, "\\\ufffd", "ä"} {
		if _, err := c.Create(t.Context(), client.NewLink{Title: title}); err != nil || got["title"] != title {
			t.Errorf("%q arrived as %q: %v", title, got["title"], err)
		}
	}
	got = nil
	for _, title := range []string{"\xff", "a\\\xff", `\ufffd` + "\xff", "\xed\xa0\x80"} {
		if _, err := c.Create(t.Context(), client.NewLink{Title: title}); !errors.Is(err, client.ErrText) || got != nil {
			t.Errorf("%q was sent: %v", title, err)
		}
	}
}

func TestNewRefusesWhatIsNoServerAddress(t *testing.T) {
	for _, s := range []string{"", "localhost:8080", "ftp://x", "http://", "http://[::1"} {
		if _, err := client.New(s); err == nil {
			t.Errorf("New(%q) accepted it", s)
		}
	}
}
